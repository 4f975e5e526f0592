//! What a plan needs of this machine against what there is.

use super::Stopped;
use crate::net::hosts::{Endpoint, Hosts};
use crate::net::limits::{Available, Needs, Towards};
use crate::plan::Plan;
use crate::plan::outlook::{Outlook, host_of};
use crate::plan::tls::is_secured;
use std::fmt::Write;
use std::net::Ipv4Addr;

/// The plan in words, and beside it what this machine has.
///
/// # Errors
/// If the plan does not fit on this machine.
pub(super) fn outlook(plan: &Plan) -> Result<String, Stopped> {
    refuse_forbidden(plan)?;
    let outlook = Outlook::of(plan);
    let available = available()?;
    let needs = needs(&outlook);
    let mut text = outlook.to_string();
    let _ = writeln!(
        text,
        "\nTHIS MACHINE\n  file descriptors: {} needed, {} left of {}\n  source ports: {} for one source address towards one destination\n  \
         memory: about {} MB needed, {} MB left",
        needs.sockets(),
        available.fds.saturating_sub(available.fds_open),
        available.fds,
        available.ports,
        needs.memory_bytes() / 1_000_000,
        available.memory_bytes / 1_000_000,
    );
    for note in available.notes(&needs) {
        let _ = writeln!(text, "  note: {note}");
    }
    refuse(&available, &needs)?;
    Ok(text)
}

/// Refuses a target that names a host which its own `never` forbids by name or address; what a name resolves to is seen by a run.
fn refuse_forbidden(plan: &Plan) -> Result<(), Stopped> {
    let mut target = plan.target.clone();
    // The whole address of such a source is a secret, and secrets are not read yet.
    target
        .probes
        .sources
        .retain(|source| !source.is_secret_as_a_whole());
    let placed = target.resolve(&|name| match name.split_once('.')? {
        ("lab", "api" | "metrics") => Some("http://127.0.0.1:1".to_owned()),
        ("lab", _) => Some("127.0.0.1:1".to_owned()),
        ("secret", secret) => Some(secret.to_owned()),
        _ => None,
    });
    Hosts::of(&placed).map(|_| ()).map_err(Stopped::refused)
}

/// Refuses a plan that needs more than there is.
///
/// # Errors
/// With everything that is lacking, and the numbers.
pub(super) fn refuse_shortage(plan: &Plan) -> Result<(), Stopped> {
    refuse(&available()?, &needs(&Outlook::of(plan)))
}

fn refuse(available: &Available, needs: &Needs) -> Result<(), Stopped> {
    let lacks: Vec<String> = available
        .shortages(needs)
        .iter()
        .map(|shortage| format!("error: {shortage}"))
        .collect();
    if lacks.is_empty() {
        Ok(())
    } else {
        Err(Stopped::Refused(lacks.join("\n")))
    }
}

fn available() -> Result<Available, Stopped> {
    Available::raise().map_err(|error| {
        Stopped::Internal(format!("error: can't read this machine's limits: {error}"))
    })
}

/// Addresses that are known only when the lab runs are on loopback, as the lab is.
fn needs(outlook: &Outlook<'_>) -> Needs {
    let towards = outlook.towards.iter().map(|row| {
        let named = host_of(&row.address);
        let endpoint = Endpoint::parse(&row.address).unwrap_or_else(|_| Endpoint::new(&named, 0));
        let host = endpoint.host().trim_matches(['[', ']']);
        let loopback = named.starts_with('<')
            || host == "localhost"
            // Hubs spread their source addresses over 127.0.0.0/8 only.
            || host
                .parse::<Ipv4Addr>()
                .is_ok_and(|address| address.is_loopback());
        Towards {
            loopback,
            hubs: row.hubs,
            secured: is_secured(&row.address),
            requests: row.requests,
            endpoint,
        }
    });
    Needs {
        towards: towards.collect(),
    }
}
