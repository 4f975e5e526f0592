//! What is read from the target, and its links: probes and connection paths.

use super::address;
use super::component::host_port;
use super::journey::row_of;
use super::probe_source::source;
use super::reader::At;
use super::target::Names;
use crate::plan::fault::{Link, LinkAddresses, LinkPath, RemoteProxy};
use crate::plan::probe::Probes;
use crate::plan::template::Template;

/// `probes:`
pub(super) fn probes(at: &At<'_>, names: &Names) -> Option<Probes> {
    let mut probes = Probes::default();
    let mut fields = at.fields()?;
    if let Some(every) = fields.get("every").and_then(|at| at.time()) {
        probes.every = every;
    }
    if let Some(timeout) = fields.get("timeout").and_then(|at| at.time()) {
        probes.timeout = timeout;
    }
    if let Some(max_blind) = fields.get("max_blind").and_then(|at| at.share()) {
        probes.max_blind = max_blind;
    }
    if probes.timeout >= probes.every {
        let at = if fields.has("timeout") {
            fields.at().find(&["timeout"])
        } else {
            fields.at().find(&["every"])
        };
        at.wrong(
            "a reading may take as long as the time to the next one",
            "make `timeout` shorter than `every`",
        );
    }
    for (name, at) in fields
        .need("sources")
        .and_then(|at| at.named())
        .unwrap_or_default()
    {
        probes.sources.extend(source(name, &at, names));
    }
    fields.finish(&[]);
    Some(probes)
}

/// One entry of `links:`.
pub(super) fn link(name: &str, at: &At<'_>, names: &Names) -> Option<Link> {
    let mut fields = at.fields()?;
    if fields.has("device") {
        let device = fields
            .need("device")
            .and_then(|at| row_of(&at, &names.devices, "device with shards", "devices"));
        fields.finish(&[]);
        return Some(Link {
            name: name.to_owned(),
            path: LinkPath::Device(device?),
        });
    }
    let listen = fields.need("listen").and_then(|at| host_port(&at, names));
    let to = fields.need("to").and_then(|at| host_port(&at, names));
    let url = fields.get("proxy").and_then(|at| proxy_url(&at, names));
    let proxy = fields.has("proxy");
    let token = match proxy {
        true => fields
            .get("token")
            .and_then(|at| at.template(&names.host_placeholders())),
        false => None,
    };
    fields.finish(&[]);
    if proxy && url.is_none() {
        return None;
    }
    Some(Link {
        name: name.to_owned(),
        path: LinkPath::Address(LinkAddresses {
            listen: listen?,
            to: to?,
            proxy: url.map(|url| RemoteProxy { url, token }),
        }),
    })
}

/// `http://host:port` of a proxy that runs elsewhere.
fn proxy_url(at: &At<'_>, names: &Names) -> Option<Template> {
    let template = at.template(&names.host_placeholders())?;
    address::check_http_root(at, &template);
    Some(template)
}
