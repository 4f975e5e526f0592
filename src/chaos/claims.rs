//! What the faults of a run act on, in words that are the same for every run of this machine's user that acts on it.

use crate::plan::Plan;
use crate::plan::fault::FaultKind;

/// What no other run may break while this one goes on.
#[must_use]
pub fn of(plan: &Plan) -> Vec<String> {
    let target = &plan.target;
    let mut claims: Vec<String> = plan
        .faults
        .iter()
        .filter_map(|fault| match &fault.kind {
            FaultKind::Act { component, .. } => Some(target.components[*component].what()),
            FaultKind::Link(on_link) => link(plan, on_link.link),
            FaultKind::Cut(cut) => link(plan, cut.link),
            FaultKind::Operate { operation } => {
                let request = &target.operations[*operation].request;
                Some(format!(
                    "the operation {} {}",
                    request.method.name(),
                    request.url
                ))
            }
        })
        .collect();
    claims.sort();
    claims.dedup();
    claims
}

/// Nobody else uses the proxy of a run's own hubs.
fn link(plan: &Plan, row: usize) -> Option<String> {
    let addresses = plan.target.links[row].addresses()?;
    Some(format!(
        "the link from {} to {}",
        addresses.listen, addresses.to
    ))
}
