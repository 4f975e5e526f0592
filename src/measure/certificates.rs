//! Which certificates hubs showed before and after they renewed, and which of them the target saw.
//!
//! Compares serial numbers as they went over the wire: that a hub was told to renew proves nothing.

use crate::event::{CertificateSerial, Event};
use crate::plan::Plan;
use crate::plan::fault::TriggerKind;
use std::collections::BTreeMap;

/// Hubs whose serial numbers are shown in full.
const MOST_EXAMPLES: usize = 3;

/// By group of hubs; only groups that renew by plan are followed.
#[derive(Debug, Clone)]
pub struct Certificates {
    /// Parallel to `Plan::hubs`.
    pub groups: Vec<Option<GroupCertificates>>,
}

/// One group of hubs.
#[derive(Debug, Clone, Default)]
pub struct GroupCertificates {
    /// Orders to renew that hubs took.
    pub renewals: u64,
    /// Handshakes of hubs that had not renewed yet.
    pub before: u64,
    /// Handshakes after a renewal, with another certificate than before it.
    pub new: u64,
    /// Handshakes after a renewal, still with the certificate from before it.
    pub old: u64,
    /// Sessions that the target listed at the end, by what their certificate was.
    pub seen: Seen,
    hubs: BTreeMap<u32, Held>,
}

/// What the target's own list of sessions said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// The certificate that the hub showed last.
    pub as_shown: u64,
    /// The one from before the renewal.
    pub outdated: u64,
    /// Any other.
    pub unknown: u64,
    pub without: u64,
}

/// The certificates of one hub that renewed.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    shown: Option<CertificateSerial>,
    /// Shown last before the renewal.
    replaced: Option<CertificateSerial>,
    seen: Option<CertificateSerial>,
    renewed: bool,
}

/// One hub's serial numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    pub hub: u32,
    pub before: CertificateSerial,
    pub after: CertificateSerial,
    /// As the target listed it at the end.
    pub seen: Option<CertificateSerial>,
}

impl Certificates {
    pub(super) fn new(plan: &Plan) -> Certificates {
        let renews = |group: usize| {
            plan.triggers.iter().any(
                |trigger| matches!(trigger.kind, TriggerKind::Renew(renew) if renew.wave.group == group),
            )
        };
        Certificates {
            groups: (0..plan.hubs.len())
                .map(|group| renews(group).then(GroupCertificates::default))
                .collect(),
        }
    }

    /// Takes an event about certificates; others are ignored. They are to come in the order of their times.
    pub(super) fn take(&mut self, event: &Event) {
        let (Event::Secured { group, .. }
        | Event::Renewed { group, .. }
        | Event::SessionSeen { group, .. }) = event
        else {
            return;
        };
        let Some(Some(row)) = self.groups.get_mut(usize::from(*group)) else {
            return;
        };
        match *event {
            Event::Secured { hub, own, .. } => row.shown(hub, own),
            Event::Renewed { hub, .. } => row.renewed(hub),
            Event::SessionSeen {
                hub, certificate, ..
            } => row.seen(hub, certificate),
            _ => {}
        }
    }
}

impl GroupCertificates {
    /// The first few hubs that showed two certificates.
    #[must_use]
    pub fn examples(&self) -> Vec<Example> {
        let both = self.hubs.iter().filter_map(|(hub, held)| {
            Some(Example {
                hub: *hub,
                before: held.replaced?,
                after: held.shown.filter(|shown| Some(*shown) != held.replaced)?,
                seen: held.seen,
            })
        });
        both.take(MOST_EXAMPLES).collect()
    }

    /// Hubs that renewed and have shown another certificate since.
    #[must_use]
    pub fn changed(&self) -> u64 {
        let changed = self
            .hubs
            .values()
            .filter(|held| held.renewed && held.shown.is_some() && held.shown != held.replaced);
        changed.count() as u64
    }

    fn shown(&mut self, hub: u32, own: Option<CertificateSerial>) {
        let held = self.hubs.entry(hub).or_default();
        match held.renewed {
            false => self.before += 1,
            true if own.is_some() && own != held.replaced => self.new += 1,
            true => self.old += 1,
        }
        held.shown = own;
    }

    fn renewed(&mut self, hub: u32) {
        self.renewals += 1;
        let held = self.hubs.entry(hub).or_default();
        held.renewed = true;
        held.replaced = held.shown;
    }

    fn seen(&mut self, hub: u32, certificate: Option<CertificateSerial>) {
        let held = self.hubs.entry(hub).or_default();
        held.seen = certificate;
        let count = match certificate {
            None => &mut self.seen.without,
            Some(_) if certificate == held.shown => &mut self.seen.as_shown,
            Some(_) if certificate == held.replaced => &mut self.seen.outdated,
            Some(_) => &mut self.seen.unknown,
        };
        *count += 1;
    }
}
