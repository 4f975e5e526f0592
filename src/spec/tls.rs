//! `tls:` of devices and of requests.

use super::fields::Fields;
use super::identities::path;
use super::reader::At;
use super::target::Names;
use crate::plan::Template;
use crate::plan::identity::{IdentitySet, IdentitySource, IdentityTable};
use crate::plan::target::Device;
use crate::plan::tls::{DeviceTls, HttpTls, KeyFiles, Resume, TlsVersion};

const RESUME: [(&str, Resume); 2] = [("never", Resume::Never), ("own", Resume::Own)];
const VERSIONS: [(&str, TlsVersion); 2] = [("1.2", TlsVersion::V1_2), ("1.3", TlsVersion::V1_3)];

/// Reads it. `who` are the placeholders of the device's identity.
pub(super) fn tls(at: &At<'_>, names: &Names, who: &[&str]) -> Option<DeviceTls> {
    let mut fields = at.fields()?;
    let files = pair(&mut fields, ("cert", "key"), names, who);
    let next_files = pair(&mut fields, ("next_cert", "next_key"), names, who);
    let server_name = fields
        .get("server_name")
        .and_then(|at| at.template(&names.host_placeholders()));
    let resume = fields.get("resume").and_then(|at| at.word(&RESUME));
    let versions = versions(&mut fields);
    let alpn = fields.get("alpn").and_then(|at| at.items());
    let alpn = alpn.unwrap_or_default();
    let alpn = alpn.iter().filter_map(|at| at.text()).map(str::to_owned);
    let alpn = alpn.collect();
    fields.finish(&[]);
    Some(DeviceTls {
        files,
        next_files,
        server_name,
        resume: resume.unwrap_or_default(),
        versions,
        alpn,
    })
}

/// The `tls:` of requests; `who` are the placeholders of whoever sends them.
pub(super) fn of_requests(at: &At<'_>, names: &Names, who: &[&str]) -> Option<HttpTls> {
    let mut fields = at.fields()?;
    let files = pair(&mut fields, ("cert", "key"), names, who);
    let resume = fields.get("resume").and_then(|at| at.word(&RESUME));
    let versions = versions(&mut fields);
    fields.finish(&[]);
    Some(HttpTls {
        files,
        resume: resume.unwrap_or_default(),
        versions,
    })
}

/// `tls:` where no address asks for it.
pub(super) fn nobody_speaks_it(at: &At<'_>) {
    at.wrong_key(
        "`tls` says how TLS is spoken, and no request here speaks it",
        "write `https://…`, or leave it out",
    );
}

/// How the requests of a journey speak TLS. Columns `cert` and `key` of its accounts are shown without being asked for.
pub(super) fn of_journey(
    at: Option<&At<'_>>,
    names: &Names,
    identity: Option<usize>,
    (who, sets): (&[&str], &[IdentitySet]),
) -> Option<HttpTls> {
    let set = identity.and_then(|row| sets.get(row));
    let columns = match set.map(|set| &set.source) {
        Some(IdentitySource::Csv(table)) => columns(table, "cert", "key"),
        _ => None,
    };
    let own = at.and_then(|at| of_requests(at, names, who));
    match own {
        Some(own) => Some(HttpTls {
            files: own.files.or(columns),
            ..own
        }),
        None => columns.map(|files| HttpTls {
            files: Some(files),
            ..HttpTls::default()
        }),
    }
}

fn versions(fields: &mut Fields<'_>) -> Vec<TlsVersion> {
    let versions = fields.get("versions").and_then(|at| at.items());
    let mut versions: Vec<TlsVersion> = versions
        .unwrap_or_default()
        .iter()
        .filter_map(|at| at.word(&VERSIONS))
        .collect();
    versions.sort_unstable();
    versions.dedup();
    versions
}

/// The columns of a table that hold a certificate and its key, if it has both.
fn columns(table: &IdentityTable, cert: &str, key: &str) -> Option<KeyFiles> {
    let has = |column: &str| table.columns.iter().any(|known| known == column);
    (has(cert) && has(key)).then(|| KeyFiles {
        cert: placeholder(cert),
        key: placeholder(key),
    })
}

/// A certificate and its key, which stand there together or not at all.
fn pair(
    fields: &mut Fields<'_>,
    (cert, key): (&'static str, &'static str),
    names: &Names,
    who: &[&str],
) -> Option<KeyFiles> {
    let (has_cert, has_key) = (fields.has(cert), fields.has(key));
    let mut read = |name| fields.get(name).and_then(|at| path(&at, names, who));
    let (read_cert, read_key) = (read(cert), read(key));
    if has_cert != has_key {
        let (there, missing) = if has_cert { (cert, key) } else { (key, cert) };
        fields.at().find(&[there]).wrong_key(
            format!("`{there}` without `{missing}`"),
            format!("add `{missing}: …`"),
        );
    }
    Some(KeyFiles {
        cert: read_cert?,
        key: read_key?,
    })
}

/// What TLS and identity of a device mean together. Columns `cert` and `key` are shown without being asked for.
pub(super) fn settle(device: &mut Device, at: &At<'_>, sets: &[IdentitySet]) {
    let set = device.identity.and_then(|row| sets.get(row));
    if !device.is_secured() {
        let key = if at.keys().iter().any(|key| key == "tls") {
            Some("tls")
        } else {
            let issued = set.is_some_and(|set| matches!(set.source, IdentitySource::Issue(_)));
            issued.then_some("identity")
        };
        if let Some(key) = key {
            at.find(&[key]).wrong_key(
                format!("`{key}` says how TLS is spoken, and no shard of this device speaks it"),
                "write `mqtts://…` or `wss://…` in `shards:`",
            );
        }
        return;
    }
    match set.map(|set| &set.source) {
        Some(IdentitySource::Issue(_)) => {
            for key in ["cert", "key", "next_cert", "next_key"] {
                let given = at.find(&["tls", key]);
                if given.has_key(key) {
                    given.wrong_key(
                        format!("`{key}` beside certificates that are issued"),
                        "leave it out, or give the device identities with `csv:`",
                    );
                }
            }
        }
        Some(IdentitySource::Csv(table)) => {
            let tls = &mut device.tls;
            tls.files = tls.files.take().or_else(|| columns(table, "cert", "key"));
            let next = || columns(table, "next_cert", "next_key");
            tls.next_files = tls.next_files.take().or_else(next);
        }
        None => {}
    }
}

fn placeholder(name: &str) -> Template {
    Template::parse(&format!("<{name}>")).unwrap_or_default()
}
