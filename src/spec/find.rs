//! How a hub knows its shard: the `find:` of a device.

use super::device::json_path;
use super::fields::Fields;
use super::journey::{self, RequestContext};
use super::reader::At;
use super::target::Names;
use crate::plan::session::MqttVersion;
use crate::plan::target::{Ask, Find};

/// `balancer`, `list`, `redirect`, `{ hash: <serial> }`, `{ ask: { get: …, keep: $.host } }`
/// `who` are the placeholders of the device's hubs.
pub(super) fn find(at: &At<'_>, names: &Names, who: &[&str]) -> Option<Find> {
    if at.lone_word().is_some() {
        let find: fn() -> Find = at.word(&[
            ("balancer", (|| Find::Balancer) as fn() -> Find),
            ("list", || Find::List(None)),
            ("redirect", || Find::Redirect),
        ])?;
        return Some(find());
    }
    let mut fields = at.fields()?;
    let found = fields.one_of(&["hash", "list", "ask"]);
    let found = found.and_then(|(form, at)| match form {
        "ask" => ask(&at, names, who),
        form => {
            let text = at.template(&names.placeholders(who))?;
            Some(match form {
                "hash" => Find::Hash(text),
                _ => Find::List(Some(text)),
            })
        }
    });
    fields.finish(&[]);
    found
}

fn ask(at: &At<'_>, names: &Names, who: &[&str]) -> Option<Find> {
    let context = RequestContext { names, base: None };
    let mut fields = at.fields()?;
    let keep = fields.need("keep").and_then(|at| json_path(&at));
    let request = journey::question(&mut fields, &context, &names.placeholders(who));
    fields.finish(&[]);
    Some(Find::Ask(Box::new(Ask {
        request: request?,
        keep: keep?,
    })))
}

/// Whether what is found fits the number of shards.
pub(super) fn check(fields: &Fields<'_>, find: Option<&Find>, shards: usize, version: MqttVersion) {
    let help =
        "add `find: { hash: <serial> }`, `list`, `redirect` or `{ ask: … }`, or keep one address";
    if find == Some(&Find::Redirect) {
        let at = fields.at().find(&["find"]);
        if version == MqttVersion::V311 {
            at.wrong(
                "MQTT 3.1.1 has no word for another server",
                "add `mqtt: 5` to the device, or write `list` or `{ ask: { get: …, keep: $.host } }`",
            );
        }
        if shards == 1 {
            at.wrong(
                "there is one shard, and hubs go to no server that does not stand here",
                "name every shard to which hubs may be sent under `shards:`",
            );
        }
    }
    if shards > 1 && !fields.has("find") {
        fields.at().find(&["shards"]).wrong_key(
            "several shards, and nothing says which hub belongs to which",
            help,
        );
    } else if shards > 1 && find == Some(&Find::Balancer) {
        fields.at().find(&["find"]).wrong(
            "a balancer is one address",
            "keep one shard, or write `find: { hash: <serial> }`, `list`, `redirect` or `{ ask: … }`",
        );
    }
}
