//! What `rushhour check` says of trust, of who hubs and riders are, and of how TLS is spoken.

use super::Outlook;
use crate::plan::HubGroup;
use crate::plan::identity::{IdentitySet, IdentitySource, Issue};
use crate::plan::quantity::{count, duration};
use crate::plan::tls::{DeviceTls, HttpTls, KeyFiles, Resume, TlsVersion, is_secured};
use std::fmt::{self, Formatter};
use std::time::Duration;

/// Where keys are kept from run to run.
const KEPT: &str = "~/.local/state/rushhour/identities";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Outlook<'_> {
    pub(super) fn identities(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let target = &self.plan.target;
        let addresses = target.addresses();
        let is_spoken = addresses.iter().any(|(_, address)| is_secured(address));
        if !is_spoken && target.identities.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nTrust and identities")?;
        if is_spoken {
            let trust = target.trust.as_ref();
            let trust = trust.map_or("the authorities of this system".to_owned(), |file| {
                format!("the authorities in {file}")
            });
            writeln!(out, "  {:<14} {trust}", "trust")?;
        }
        if addresses
            .iter()
            .any(|(_, text)| text.starts_with("https://"))
        {
            writeln!(out, "  {:<14} {}", "requests", of_requests(&target.tls))?;
        }
        for (row, set) in target.identities.iter().enumerate() {
            for (nth, line) in self.set(row, set).iter().enumerate() {
                let name = if nth == 0 { set.name.as_str() } else { "" };
                writeln!(out, "  {name:<14} {line}")?;
            }
        }
        Ok(())
    }

    fn set(&self, row: usize, set: &IdentitySet) -> Vec<String> {
        let plan = self.plan;
        let hubs = plan.hubs.iter().map(|group| (&group.name, &group.identity));
        let riders = plan.riders.iter();
        let riders = riders.map(|group| (&group.name, &group.identity));
        let users: Vec<String> = hubs
            .chain(riders)
            .filter_map(|(name, rows)| {
                let rows = rows.as_ref().filter(|rows| rows.set == row)?;
                Some(format!("{name} {}", count(rows.count as u64)))
            })
            .collect();
        let users = match users.is_empty() {
            true => "nobody".to_owned(),
            false => users.join(", "),
        };
        match &set.source {
            IdentitySource::Csv(table) => vec![format!(
                "{}: {} rows, used by {users}; columns {}",
                table.file.display(),
                count(table.rows.len() as u64),
                table.columns.join(", ")
            )],
            IdentitySource::Issue(issue) => issued(&set.name, issue, &users),
        }
    }
}

fn issued(name: &str, issue: &Issue, users: &str) -> Vec<String> {
    let authority = match &issue.authority {
        Some((cert, key)) => format!("{cert} (key {key}), made if both are missing"),
        None => format!("one of its own, made once: {KEPT}/{name}/ca.pem"),
    };
    let valid = match issue.valid.as_secs().is_multiple_of(DAY.as_secs()) {
        true => format!("{} d", issue.valid.as_secs() / DAY.as_secs()),
        false => duration(issue.valid),
    };
    vec![
        format!("a P-256 certificate for each, valid for {valid}: {users}"),
        format!("authority: {authority}"),
        format!("keys, made once: {KEPT}/{name}/keys.pem ($XDG_STATE_HOME wins)"),
    ]
}

/// How the hubs of a group speak TLS; `None` if they don't.
pub(super) fn of_hubs(outlook: &Outlook<'_>, group: &HubGroup) -> Option<String> {
    let target = &outlook.plan.target;
    let device = &target.devices[group.device];
    if !device.is_secured() {
        return None;
    }
    let set = device.identity.and_then(|row| target.identities.get(row));
    let DeviceTls {
        files,
        next_files,
        server_name,
        resume,
        versions,
        alpn,
    } = &device.tls;
    let mut parts = spoken(*resume, versions);
    if let Some(name) = server_name {
        parts.push(format!("the server's certificate must be for {name}"));
    }
    if !alpn.is_empty() {
        parts.push(format!("ALPN {}", alpn.join(", ")));
    }
    parts.push(match set.map(|set| (&set.name, &set.source)) {
        Some((name, IdentitySource::Issue(_))) => format!("each shows its certificate of {name}"),
        _ => shown(files.as_ref()),
    });
    if let Some(next) = next_files {
        parts.push(format!("renews to {} with {}", next.cert, next.key));
    }
    Some(format!("TLS: {}", parts.join("; ")))
}

/// How requests speak TLS.
pub(super) fn of_requests(tls: &HttpTls) -> String {
    let mut parts = spoken(tls.resume, &tls.versions);
    parts.push(shown(tls.files.as_ref()));
    format!("TLS: {}", parts.join("; "))
}

fn spoken(resume: Resume, versions: &[TlsVersion]) -> Vec<String> {
    let names: Vec<&str> = match versions {
        [] => vec!["1.2", "1.3"],
        some => some.iter().map(|version| version.name()).collect(),
    };
    vec![
        format!("versions {}", names.join(", ")),
        format!("resume {}", resume.name()),
    ]
}

fn shown(files: Option<&KeyFiles>) -> String {
    match files {
        Some(files) if files.is_shared() => format!("all show {} with {}", files.cert, files.key),
        Some(files) => format!("each shows {} with {}", files.cert, files.key),
        None => "no certificate of its own".to_owned(),
    }
}
