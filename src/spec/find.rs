//! How a hub knows its shard: the `find:` of a device.

use super::device::json_path;
use super::fields::Fields;
use super::journey::{self, RequestContext};
use super::reader::At;
use super::target::Names;
use crate::plan::target::{Ask, Find};

/// `balancer`, `list`, `{ hash: <serial> }`, `{ ask: { get: …, keep: $.host } }`
/// `who` are the placeholders of the device's hubs.
pub(super) fn find(at: &At<'_>, names: &Names, who: &[&str]) -> Option<Find> {
    if at.lone_word().is_some() {
        if at.lone_word() == Some("redirect") {
            at.wrong(
                "`redirect` is not supported in this version",
                "write `list` or `{ ask: { get: …, keep: $.host } }`",
            );
            return None;
        }
        let is_list = at.word(&[("balancer", false), ("list", true)])?;
        return Some(match is_list {
            true => Find::List(None),
            false => Find::Balancer,
        });
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
pub(super) fn check(fields: &Fields<'_>, find: Option<&Find>, shards: usize) {
    let help = "add `find: { hash: <serial> }`, `list` or `{ ask: … }`, or keep one address";
    if shards > 1 && !fields.has("find") {
        fields.at().find(&["shards"]).wrong_key(
            "several shards, and nothing says which hub belongs to which",
            help,
        );
    } else if shards > 1 && find == Some(&Find::Balancer) {
        fields.at().find(&["find"]).wrong(
            "a balancer is one address",
            "keep one shard, or write `find: { hash: <serial> }`, `list` or `{ ask: … }`",
        );
    }
}
