//! What is read from the target, and its links: probes and connection paths.

use super::component::host_port;
use super::probe_source::source;
use super::reader::At;
use super::target::Names;
use crate::plan::fault::Link;
use crate::plan::probe::Probes;

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
    let listen = fields.need("listen").and_then(|at| host_port(&at, names));
    let to = fields.need("to").and_then(|at| host_port(&at, names));
    fields.finish(&["device", "proxy"]);
    Some(Link {
        name: name.to_owned(),
        listen: listen?,
        to: to?,
    })
}
