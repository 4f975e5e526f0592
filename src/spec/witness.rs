//! What shows where hubs and commands are: the `live_sessions:` and the `ghost:` of a device.

use super::device::json_path;
use super::fields::Fields;
use super::journey::{self, RequestContext};
use super::reader::At;
use super::target::Names;
use crate::plan::witness::LiveSessions;

/// `{ get: …?after=<after>, list: $.sessions, client_id: $.serial, certificate: $.certificate, next: $.next }`
pub(super) fn live_sessions(at: &At<'_>, names: &Names) -> Option<LiveSessions> {
    let context = RequestContext { names, base: None };
    let known = names.placeholders(&["after"]);
    let mut fields = at.fields()?;
    let mut path = |key: &'static str| fields.need(key).and_then(|at| json_path(&at));
    let (list, client_id) = (path("list"), path("client_id"));
    let certificate = path("certificate");
    let next_at = fields.get("next");
    let next = next_at.as_ref().and_then(json_path);
    let request = journey::question(&mut fields, &context, &known);
    let pages = request.as_ref().is_some_and(|request| {
        let mut asks = false;
        request.names(&mut |name| asks |= name == "after");
        asks
    });
    if let (Some(at), false, true) = (next_at, pages, request.is_some()) {
        at.wrong_key(
            "every page would be the first one: the request does not say after what",
            "put `<after>` into its address",
        );
    }
    fields.finish(&[]);
    Some(LiveSessions {
        request: request?,
        list: list?,
        client_id: client_id?,
        certificate: certificate?,
        next,
    })
}

/// `ghost: true`, for a device of so many shards.
pub(super) fn ghost(fields: &mut Fields<'_>, shards: usize) -> bool {
    let ghost = fields.get("ghost").and_then(|at| at.truth());
    if ghost != Some(true) {
        return false;
    }
    let at = fields.at().find(&["ghost"]);
    if !fields.has("command") || shards < 2 {
        at.wrong_key(
            "a ghost watches for commands on shards that hubs have left",
            "name several shards and a `command:` topic, or leave it out",
        );
        return false;
    }
    let topic = fields.at().find(&["command", "topic"]);
    let is_partial = |level: &str| level.contains('<') && !is_placeholder(level);
    if let Some(text) = topic.text()
        && text.split('/').any(is_partial)
    {
        at.wrong_key(
            format!("a ghost can't subscribe to `{text}` of all hubs: a wildcard stands for a whole level"),
            "use a topic like `d/<serial>/cmd`, or leave the ghost out",
        );
        return false;
    }
    true
}

fn is_placeholder(level: &str) -> bool {
    level.starts_with('<') && level.find('>') == Some(level.len() - 1)
}
