//! Faults of an experiment that act on a link.

use super::fields::Fields;
use super::journey::row_of;
use super::reader::At;
use super::target::Names;
use crate::plan::fault::{Connections, Cut, CutBy, FaultKind, LinkEffect, LinkFault, Packets, Way};
use std::time::Duration;

/// The keys of these faults.
pub(super) const FORMS: [&str; 13] = [
    "latency",
    "bandwidth",
    "slow_close",
    "black_hole",
    "reset",
    "slice",
    "limit",
    "refuse",
    "cut",
    "withhold",
    "disconnect",
    "abort",
    "delay",
];
const CONNECTIONS: [(&str, Connections); 3] = [
    ("all", Connections::All),
    ("existing", Connections::Existing),
    ("new", Connections::New),
];
const PACKETS: [(&str, Packets); 3] = [
    ("connack", Packets::Connack),
    ("pingresp", Packets::Pingresp),
    ("puback", Packets::Puback),
];
const WAYS: [(&str, Way); 3] = [
    ("requests", Way::Requests),
    ("answers", Way::Answers),
    ("both", Way::Both),
];
/// Pieces without a pause may run together again, and nobody could see that they were cut.
const SLICE_PAUSE: Duration = Duration::from_millis(10);
/// What a canary can send to see that a limit bites.
const LARGEST_LIMIT: u64 = 4_000_000;

/// The fault under one of [`FORMS`].
pub(super) fn fault(form: &str, at: &At<'_>, names: &Names) -> Option<FaultKind> {
    let mut fields = at.fields()?;
    let link = fields
        .need("link")
        .and_then(|at| row_of(&at, &names.links, "link", "links"));
    let share = share(&mut fields);
    if form == "cut" {
        let cut = cut(&mut fields, share, link);
        fields.finish(&[]);
        return cut.map(FaultKind::Cut);
    }
    let (effect, way) = effect(form, &mut fields, share);
    // Who is refused is new, whatever else.
    let connections = match form {
        "refuse" => Some(Connections::All),
        _ => connections(&mut fields),
    };
    fields.finish(&[]);
    let of_requests = matches!(form, "abort" | "delay");
    Some(FaultKind::Link(LinkFault {
        link: link?,
        share: if of_requests { 1.0 } else { share? },
        way: way?,
        connections: connections?,
        effect: effect?,
    }))
}

/// What a fault does and on which way; `share` is of the requests where these are meant.
fn effect(
    form: &str,
    fields: &mut Fields<'_>,
    share: Option<f64>,
) -> (Option<LinkEffect>, Option<Way>) {
    match form {
        "latency" => (latency(fields), way(fields, None)),
        "bandwidth" => {
            let rate = fields.need("rate").and_then(|at| at.byte_rate());
            let effect = rate.map(|bytes_per_second| LinkEffect::Bandwidth { bytes_per_second });
            (effect, way(fields, None))
        }
        "slow_close" => {
            let by = fields.need("by").and_then(|at| at.time());
            let effect = by.map(|by| LinkEffect::SlowClose { by });
            (effect, way(fields, Some(Way::Both)))
        }
        "black_hole" => (black_hole(fields), way(fields, Some(Way::Both))),
        "reset" => {
            let after = duration_or_none(fields, "after");
            (Some(LinkEffect::Reset { after }), Some(Way::Both))
        }
        "slice" => (slice(fields), way(fields, None)),
        "limit" => (limit(fields), way(fields, None)),
        "withhold" => withhold(fields),
        "disconnect" => {
            let reason = fields.need("reason").and_then(|at| reason(&at));
            let after = duration_or_none(fields, "after");
            let effect = reason.map(|reason| LinkEffect::Disconnect { reason, after });
            (effect, Some(Way::Answers))
        }
        "abort" => {
            let status = fields.need("status").and_then(|at| status(&at));
            let effect = status.zip(share);
            let effect = effect.map(|(status, share)| LinkEffect::Abort { status, share });
            (effect, Some(Way::Requests))
        }
        "delay" => {
            let add = fields.need("add").and_then(|at| at.time()).zip(share);
            let effect = add.map(|(add, share)| LinkEffect::Delay { add, share });
            (effect, Some(Way::Requests))
        }
        _ => (Some(LinkEffect::Refuse), Some(Way::Both)),
    }
}

/// All of them, unless the file says which.
fn connections(fields: &mut Fields<'_>) -> Option<Connections> {
    match fields.get("connections") {
        Some(at) => at.word(&CONNECTIONS),
        None if fields.has("connections") => None,
        None => Some(Connections::All),
    }
}

/// Only a PUBACK goes both ways; the broker's is meant unless the file says otherwise.
fn withhold(fields: &mut Fields<'_>) -> (Option<LinkEffect>, Option<Way>) {
    let packets = fields.need("packets").and_then(|at| at.word(&PACKETS));
    let to = match packets {
        Some(Packets::Puback) | None => way(fields, Some(Way::Answers)),
        Some(Packets::Connack | Packets::Pingresp) => Some(Way::Answers),
    };
    (packets.map(LinkEffect::Withhold), to)
}

/// What an HTTP server may answer at the end: 1xx announces another answer.
fn status(at: &At<'_>) -> Option<u16> {
    let text = at.lone_word()?;
    let status = text
        .parse()
        .ok()
        .filter(|status| (200..=599).contains(status));
    if status.is_none() {
        at.wrong(
            format!("`{text}` is no status that ends an HTTP request"),
            "write one from 200 to 599, such as `503`",
        );
    }
    status
}

/// All connections, unless the file says which share.
fn share(fields: &mut Fields<'_>) -> Option<f64> {
    let Some(at) = fields.get("share") else {
        return Some(1.0);
    };
    let share = at.share()?;
    if share == 0.0 {
        at.wrong("no connection is hit", "write a share above zero");
        return None;
    }
    Some(share)
}

fn way(fields: &mut Fields<'_>, otherwise: Option<Way>) -> Option<Way> {
    match (otherwise, fields.has("to")) {
        (Some(way), false) => Some(way),
        _ => fields.need("to").and_then(|at| at.word(&WAYS)),
    }
}

fn duration_or_none(fields: &mut Fields<'_>, key: &'static str) -> Duration {
    let given = fields.get(key).and_then(|at| at.duration());
    given.unwrap_or_default()
}

fn latency(fields: &mut Fields<'_>) -> Option<LinkEffect> {
    let add = fields.need("add").and_then(|at| at.time());
    let jitter = duration_or_none(fields, "jitter");
    if add.is_some_and(|add| jitter > add) {
        fields
            .at()
            .find(&["jitter"])
            .wrong("`jitter` is more than `add`", "no delay can be negative");
    }
    Some(LinkEffect::Latency { add: add?, jitter })
}

fn black_hole(fields: &mut Fields<'_>) -> Option<LinkEffect> {
    let Some(at) = fields.get("close_after") else {
        return Some(LinkEffect::BlackHole);
    };
    at.time().map(|after| LinkEffect::Timeout { after })
}

fn slice(fields: &mut Fields<'_>) -> Option<LinkEffect> {
    let size_at = fields.need("bytes");
    let bytes = size_at.as_ref().and_then(|at| at.size());
    if let (Some(at), Some(0)) = (&size_at, bytes) {
        at.wrong(
            "a piece has at least one byte",
            "write a size such as `64B`",
        );
    }
    let vary = fields.get("vary").and_then(|at| at.size()).unwrap_or(0);
    let pause = match fields.get("pause") {
        Some(at) => at.time(),
        None => Some(SLICE_PAUSE),
    };
    Some(LinkEffect::Slice {
        bytes: bytes?,
        vary,
        pause: pause?,
    })
}

fn limit(fields: &mut Fields<'_>) -> Option<LinkEffect> {
    let at = fields.need("bytes")?;
    let bytes = at.size()?;
    if bytes > LARGEST_LIMIT {
        at.wrong(
            "nobody could see within seconds that this limit bites",
            "write at most `4MB`",
        );
        return None;
    }
    Some(LinkEffect::Limit { bytes })
}

fn cut(fields: &mut Fields<'_>, share: Option<f64>, link: Option<usize>) -> Option<Cut> {
    let within = duration_or_none(fields, "within");
    let by = fields.need("by").and_then(|at| cut_by(&at));
    Some(Cut {
        link: link?,
        share: share?,
        within,
        by: by?,
    })
}

/// `reset`, `close` or `{ disconnect: 0x8B }`
fn cut_by(at: &At<'_>) -> Option<CutBy> {
    if at.lone_word().is_some() {
        return at.word(&[("reset", CutBy::Reset), ("close", CutBy::Close)]);
    }
    let mut fields = at.fields()?;
    let reason = fields.need("disconnect").and_then(|at| reason(&at));
    fields.finish(&[]);
    reason.map(CutBy::Disconnect)
}

/// A reason code of MQTT 5, as the standard writes it.
fn reason(at: &At<'_>) -> Option<u8> {
    let text = at.lone_word()?;
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let reason = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
    if reason.is_none() {
        at.wrong(
            format!("`{text}` is no reason code of MQTT 5"),
            "write it in hexadecimal, such as `0x8B` (server shutting down)",
        );
    }
    reason
}
