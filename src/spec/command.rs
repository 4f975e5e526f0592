//! Commands of a target file: how one is handed over, and whose id it has.

use super::device::json_path;
use super::fields::Fields;
use super::journey::{RequestContext, Use, request, row_of};
use super::message;
use super::reader::At;
use super::tls;
use crate::event::{CommandId, CommandName};
use crate::plan::command::{CommandSend, CommandSpec, IdOwner, Publishing};
use crate::plan::target::Device;
use crate::plan::tls::is_secured;

/// What stands for the id of a command.
pub(super) const IDS: [&str; 2] = ["command", "command.uuid"];
/// Of a run that nobody starts.
const NO_RUN: &str = "nobody";

/// One entry of `commands:`.
pub(super) fn command(
    name: &str,
    at: &At<'_>,
    context: &RequestContext<'_>,
    devices: &[Device],
) -> Option<CommandSpec> {
    let mut fields = at.fields()?;
    let to = fields
        .need("to")
        .and_then(|at| row_of(&at, &context.names.devices, "device", "devices"));
    let wanted = to.map(|to| &context.names.devices[to]);
    let device = wanted.and_then(|name| devices.iter().find(|device| device.name == *name));
    let columns = to.and_then(|row| context.names.device_columns.get(row));
    let columns = columns.into_iter().flatten().map(String::as_str);
    let mut known: Vec<&str> = columns.filter(|column| *column != "serial").collect();
    known.extend(["serial", IDS[0], IDS[1]]);
    let id = fields.get("id").and_then(|at| owner(&at));
    let tls = fields.get("tls");
    let own = tls
        .as_ref()
        .and_then(|at| tls::of_requests(at, context.names, &[]));
    let send = if fields.has("publish") {
        let topic = fields.one_of(&Use::Command.keys()).map(|(_, at)| at);
        let version = device.map(|device| device.version);
        message::publishing(&mut fields, topic, context.names, &known, version)
            .map(CommandSend::Publish)
    } else {
        let known = context.names.carried(&known);
        request(&mut fields, context, &known, Use::Command).map(CommandSend::Http)
    };
    let id = id.unwrap_or_default();
    if let Some(send) = &send {
        check_id(at, &fields, send, &id, device);
    }
    if let Some(at) = tls
        && send.as_ref().is_some_and(|send| !speaks_tls(send))
    {
        tls::nobody_speaks_it(&at);
    }
    fields.finish(&[]);
    Some(CommandSpec {
        name: name.to_owned(),
        to: to?,
        send: send?,
        id,
        tls: own,
    })
}

fn speaks_tls(send: &CommandSend) -> bool {
    match send {
        CommandSend::Http(request) => is_secured(&request.url.to_string()),
        CommandSend::Publish(_) => false,
    }
}

/// `ours`, or `{ theirs: $.commandId }`
fn owner(at: &At<'_>) -> Option<IdOwner> {
    match at.lone_word() {
        Some("ours") => return Some(IdOwner::Ours),
        Some(_) => {
            at.wrong(
                "unknown; expected `ours` or `{ theirs: $.id }`",
                "write `ours` where we choose the id, and `{ theirs: $.id }` where the target's answer names it",
            );
            return None;
        }
        None => {}
    }
    let mut fields = at.fields()?;
    let path = fields.need("theirs").and_then(|at| json_path(&at));
    fields.finish(&[]);
    path.map(IdOwner::Theirs)
}

/// A hub must be able to say which command it got.
fn check_id(
    at: &At<'_>,
    fields: &Fields<'_>,
    send: &CommandSend,
    id: &IdOwner,
    device: Option<&Device>,
) {
    let mut is_in = false;
    let mut look = |name: &str| is_in |= IDS.contains(&name);
    match (send, id) {
        (CommandSend::Http(_), IdOwner::Theirs(_)) => return,
        (CommandSend::Publish(_), IdOwner::Theirs(_)) => {
            fields.at().find(&["id"]).wrong(
                "nobody answers what is published, so the id of a command can't be theirs",
                "write `id: ours`, or leave the key out",
            );
            return;
        }
        (CommandSend::Publish(publishing), IdOwner::Ours) => publishing.names(&mut look),
        (CommandSend::Http(request), IdOwner::Ours) => request.names(&mut look),
    }
    if !is_in {
        at.wrong_key(
            "the command's id is nowhere in it, so no hub could say which command it got",
            "add `id: <command>` to its `json:`, or say where the answer names it: `id: { theirs: $.id }`",
        );
        return;
    }
    if let (CommandSend::Publish(publishing), Some(device)) = (send, device)
        && let Some(place) = device.command.as_ref().map(|command| &command.id)
        && is_lost(publishing, device)
    {
        at.wrong_key(
            format!(
                "the hubs of `{}` look for the id of a command at {place}, and it is not there",
                device.name
            ),
            "put it there, or change the device's `command: { id: … }`",
        );
    }
}

/// Whether hubs would not find the id in what is published.
fn is_lost(publishing: &Publishing, device: &Device) -> bool {
    let Some(command) = &device.command else {
        return false;
    };
    let name = CommandName::from(CommandId {
        issuer: 0,
        number: 1,
    });
    let mut value = |word: &str, out: &mut String| {
        if !name.value(word, NO_RUN, out) {
            out.push('0');
        }
        true
    };
    let Ok(payload) = publishing.payload.render(&mut value) else {
        return false;
    };
    let found = command.id.find(&payload, |wanted| {
        let mut properties = publishing.properties.iter();
        let (_, template) = properties.find(|(property, _)| property == wanted)?;
        let mut text = String::new();
        template.render_into(&mut text, &mut value).ok()?;
        Some(text.into_bytes())
    });
    found.and_then(|found| CommandName::read(&found, NO_RUN)) != Some(name)
}
