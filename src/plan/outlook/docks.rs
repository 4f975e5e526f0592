//! What `rushhour check` prints of docks.

use super::Outlook;
use super::policy::policy;
use crate::plan::dock::{Flush, SomeDocks};
use crate::plan::quantity::{count, duration};
use std::fmt::{self, Formatter};
use std::time::Duration;

impl Outlook<'_> {
    pub(super) fn docks(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for group in &self.plan.docks {
            let device = &self.plan.target.docks[group.device];
            let status = group.status_every.map_or_else(
                || "no status".to_owned(),
                |every| format!("status every {}", duration(every)),
            );
            writeln!(
                out,
                "  {:<14} {} docks ({}), {status}, timeout {}",
                group.name,
                count(u64::from(group.count)),
                device.name,
                duration(group.timeout)
            )?;
            writeln!(
                out,
                "  {:<14} returns {}; after an outage {}",
                "",
                policy(&group.retry),
                flush(group.flush)
            )?;
            for sent in &device.sends {
                let asked = match &sent.reconcile {
                    Some(reconcile) => format!(
                        "asked for at the end, for at most {}",
                        duration(reconcile.within)
                    ),
                    None => "never asked for".to_owned(),
                };
                writeln!(out, "  {:<14} sends {}, {asked}", "", sent.name)?;
            }
        }
        Ok(())
    }

    pub(super) fn docks_do(&self, some: SomeDocks, what: &str, lasts: Duration) -> String {
        let group = &self.plan.docks[some.docks];
        let docks = (f64::from(group.count) * some.share).round() as u64;
        let within = if some.within.is_zero() {
            "at once".to_owned()
        } else {
            format!("within {}", duration(some.within))
        };
        format!(
            "{} docks of {} {what}, {within}, for {}",
            count(docks),
            group.name,
            duration(lasts)
        )
    }
}

fn flush(flush: Flush) -> String {
    let first = if flush.first.is_zero() {
        "at once".to_owned()
    } else {
        format!("the first within {}", duration(flush.first))
    };
    if flush.every.is_zero() {
        format!("{first}, then one after the other")
    } else {
        format!("{first}, then one every {}", duration(flush.every))
    }
}
