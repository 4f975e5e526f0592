//! What a share of hubs does by itself: `renew:` and `reauthenticate:` of the timeline.

use super::fields::Fields;
use super::journey::row_of;
use super::reader::At;
use super::timeline::{HOW, Stage};
use crate::plan::fault::How;
use crate::plan::wave::{Jitter, OldSessions, Renew, Wave};
use std::time::Duration;

const JITTERS: [(&str, Jitter); 2] = [("none", Jitter::None), ("full", Jitter::Full)];

/// `{ hubs: homes, share: 100%, within: 10s, jitter: full, sessions: end, by: disconnect }`
pub(super) fn renew(at: &At<'_>, stage: &Stage<'_>) -> Option<Renew> {
    let mut fields = at.fields()?;
    let wave = wave(&mut fields, stage);
    let keep = fields
        .get("sessions")
        .and_then(|at| at.word(&[("end", false), ("keep", true)]))
        .unwrap_or(false);
    let by = fields.get("by");
    if let (Some(at), true) = (&by, keep) {
        at.wrong_key(
            "sessions that are kept end in no way",
            "leave `by` out, or write `sessions: end`",
        );
    }
    let by = by.map_or(Some(How::Disconnect), |at| at.word(&HOW));
    fields.finish(&[]);
    Some(Renew {
        wave: wave?,
        sessions: match keep {
            true => OldSessions::Keep,
            false => OldSessions::End(by?),
        },
    })
}

/// `{ hubs: homes, share: 100%, within: 10s, jitter: full }`
pub(super) fn reauthenticate(at: &At<'_>, stage: &Stage<'_>) -> Option<Wave> {
    let mut fields = at.fields()?;
    let wave = wave(&mut fields, stage);
    fields.finish(&[]);
    wave
}

/// Who takes part in something, and over how long a time.
pub(super) struct Crowd {
    pub group: Option<usize>,
    pub share: Option<f64>,
    pub within: Duration,
}

/// `hubs: homes, share: 38%, within: 2s`
pub(super) fn crowd(fields: &mut Fields<'_>, stage: &Stage<'_>) -> Crowd {
    let group = fields
        .need("hubs")
        .and_then(|at| row_of(&at, stage.hub_groups, "group of hubs", "hubs"));
    let share_at = fields.get("share");
    let share = share_at.as_ref().map_or(Some(1.0), |at| at.share());
    if let (Some(at), Some(0.0)) = (share_at, share) {
        at.wrong("nobody takes part", "write a share above zero");
    }
    let within = fields.get("within").and_then(|at| at.duration());
    Crowd {
        group,
        share,
        within: within.unwrap_or_default(),
    }
}

fn wave(fields: &mut Fields<'_>, stage: &Stage<'_>) -> Option<Wave> {
    let Crowd {
        group,
        share,
        within,
    } = crowd(fields, stage);
    let jitter_at = fields.get("jitter");
    let jitter = jitter_at
        .as_ref()
        .map_or(Some(Jitter::None), |at| at.word(&JITTERS));
    if let (Some(at), Some(Jitter::Full)) = (jitter_at, jitter)
        && within.is_zero()
    {
        at.wrong_key(
            "jitter needs a time to lie within",
            "add `within: 10s`, or leave `jitter` out",
        );
    }
    Some(Wave {
        group: group?,
        share: share?,
        within,
        jitter: jitter?,
    })
}
