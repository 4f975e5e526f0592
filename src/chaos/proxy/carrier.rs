//! The proxy that carries a link, as it lies in the journal: a process of this machine, or one elsewhere that is reached by HTTP.

use crate::chaos::process::Identity;
use crate::net::secrets::Secrets;
use crate::plan::Target;
use crate::plan::fault::RemoteProxy;
use crate::plan::target::SecretSource;
use crate::plan::template::Template;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Which proxy it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carrier {
    /// When it has ended, its faults have ended, too.
    Process(Identity),
    Remote(Remote),
}

/// A proxy elsewhere, with everything that asking it needs; secrets stand as `<secret.NAME>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remote {
    /// `http://host:port` of its API.
    pub url: String,
    pub token: Option<String>,
    /// Where the secrets that it names come from.
    pub secrets: BTreeMap<String, SecretSource>,
    /// The target's `never`.
    pub never: Vec<String>,
    /// The target's `trust`.
    pub trust: Option<String>,
}

impl Remote {
    /// The proxy as a target file names it, whose secrets are still placeholders.
    #[must_use]
    pub fn of(proxy: &RemoteProxy, target: &Target) -> Remote {
        let mut secrets = target.secrets.clone();
        let named: Vec<&str> = proxy
            .url
            .names()
            .chain(proxy.token.iter().flat_map(Template::names))
            .filter_map(|name| name.strip_prefix("secret."))
            .collect();
        secrets.retain(|name, _| named.contains(&name.as_str()));
        Remote {
            url: proxy.url.to_string(),
            token: proxy.token.as_ref().map(Template::to_string),
            secrets,
            never: target.never.clone(),
            trust: target.trust.as_ref().map(Template::to_string),
        }
    }

    /// Address and token, with the secrets read anew.
    ///
    /// # Errors
    /// If a secret can't be read, with what to do.
    pub(super) fn revealed(&self) -> Result<(String, Option<String>), String> {
        let secrets = Secrets::read(&self.secrets).map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
            lines.join("; ")
        })?;
        let reveal = |text: &str| {
            let template = Template::parse(text).map_err(|error| error.to_string())?;
            let resolved = template.resolve(&|name| {
                let secret = name.strip_prefix("secret.")?;
                secrets.value(secret).map(str::to_owned)
            });
            Ok::<_, String>(resolved.to_string())
        };
        let token = self.token.as_deref().map(reveal).transpose()?;
        Ok((reveal(&self.url)?, token))
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Carrier::Process(process) => write!(formatter, "fault proxy {}", process.pid),
            Carrier::Remote(remote) => write!(formatter, "fault proxy {}", remote.url),
        }
    }
}
