//! The links and faults of a proxy in the text format of Prometheus.

use super::links::Links;
use super::wire::{FaultState, LinkState};
use std::fmt::Write;

type Of<Row> = fn(&Row) -> u64;

const OF_LINKS: [(&str, &str, &str, Of<LinkState>); 6] = [
    (
        "rushhour_link_open",
        "gauge",
        "Connections carried now.",
        |link| link.open,
    ),
    (
        "rushhour_link_accepted_total",
        "counter",
        "Connections accepted.",
        |link| link.accepted,
    ),
    (
        "rushhour_link_refused_total",
        "counter",
        "Connections for which the target could not be reached, or that a fault refused.",
        |link| link.refused,
    ),
    (
        "rushhour_link_cut_total",
        "counter",
        "Connections cut.",
        |link| link.cut,
    ),
    (
        "rushhour_link_to_target_bytes_total",
        "counter",
        "Bytes passed on to the target.",
        |link| link.to_target_bytes,
    ),
    (
        "rushhour_link_to_client_bytes_total",
        "counter",
        "Bytes passed on to clients.",
        |link| link.to_client_bytes,
    ),
];
const OF_FAULTS: [(&str, &str, &str, Of<FaultState>); 4] = [
    (
        "rushhour_fault_acts_on",
        "gauge",
        "Live connections that the fault acts on.",
        |fault| fault.acts_on,
    ),
    (
        "rushhour_fault_reached_total",
        "counter",
        "Connections that the fault ever acted on.",
        |fault| fault.reached,
    ),
    (
        "rushhour_fault_foreign",
        "gauge",
        "Live connections that pass because they speak something else.",
        |fault| fault.foreign,
    ),
    (
        "rushhour_fault_hits_total",
        "counter",
        "Chunks, packets, requests or connections that the fault has hit.",
        |fault| fault.hits,
    ),
];

/// Everything that is counted, now.
pub(super) fn text(links: &Links) -> String {
    let states: Vec<LinkState> = links.all().iter().map(|link| link.state()).collect();
    let mut out = String::new();
    for (name, kind, help, of) in OF_LINKS {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for link in &states {
            let _ = writeln!(
                out,
                "{name}{{link=\"{}\"}} {}",
                quoted(&link.name),
                of(link)
            );
        }
    }
    for (name, kind, help, of) in OF_FAULTS {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for link in &states {
            for fault in &link.faults {
                let (link, id) = (quoted(&link.name), quoted(&fault.id));
                let _ = writeln!(
                    out,
                    "{name}{{fault=\"{id}\",link=\"{link}\"}} {}",
                    of(fault)
                );
            }
        }
    }
    out
}

/// As the value of a label may hold it.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n")
}
