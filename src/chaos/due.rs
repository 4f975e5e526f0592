//! When a fault is due: at its time, or so long after something that it waits for.

use super::faults::Setup;
use crate::event::Offset;
use crate::plan::fault::{After, Edge, Fault};
use std::time::Duration;
use tokio::sync::watch;

/// What came of waiting.
pub(super) enum Due {
    Now,
    /// It will not be injected, and why.
    Never(String),
    /// The run stops.
    Stopped,
}

impl Setup {
    /// Waits until a fault is due. One that waits for something must be due before the load ends.
    pub(super) async fn due(&self, fault: &Fault, stopped: &mut watch::Receiver<bool>) -> Due {
        let Some(after) = fault.after else {
            return match self.reaches(fault.at, stopped).await {
                true => Due::Now,
                false => Due::Stopped,
            };
        };
        let name = self.plan.mark_name(after.mark);
        let load_end = self.zero.after(self.plan.duration);
        let moment = tokio::select! {
            moment = self.bulletin.moment(after, name) => moment,
            () = tokio::time::sleep_until(self.clock.instant(load_end)) => {
                Err(format!("{name} did not {} before the load ended", verb(after.edge)))
            }
            _ = stopped.wait_for(|stopped| *stopped) => return Due::Stopped,
        };
        let due = match moment {
            Ok(moment) => moment.after(after.wait),
            Err(why) => return Due::Never(why),
        };
        if due >= load_end {
            return Due::Never(self.too_late(after, name, due));
        }
        match self.reaches(due.since(self.zero), stopped).await {
            true => Due::Now,
            false => Due::Stopped,
        }
    }

    /// Waits for a time of the profile; false if the run stops before.
    pub(super) async fn reaches(&self, at: Duration, stopped: &mut watch::Receiver<bool>) -> bool {
        tokio::select! {
            () = tokio::time::sleep_until(self.clock.instant(self.zero.after(at))) => true,
            _ = stopped.wait_for(|stopped| *stopped) => false,
        }
    }

    fn too_late(&self, after: After, name: &str, due: Offset) -> String {
        format!(
            "{} is {} s after 0:00, and the load ends before that",
            after.text(name),
            due.since(self.zero).as_secs()
        )
    }
}

fn verb(edge: Edge) -> &'static str {
    match edge {
        Edge::Begin => "begin",
        Edge::End => "end",
        Edge::Recovery => "recover",
    }
}
