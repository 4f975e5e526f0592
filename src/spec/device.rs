//! Devices of a target file: where a kind of hub connects and what it says.

use super::address;
use super::command::IDS;
use super::fields::Fields;
use super::find;
use super::identities;
use super::message;
use super::reader::At;
use super::session;
use super::target::Names;
use super::tls;
use super::witness;
use super::words::Placeholders;
use crate::plan::command::Publishing;
use crate::plan::identity::IdentitySet;
use crate::plan::json_path::JsonPath;
use crate::plan::session::MqttVersion;
use crate::plan::target::{CommandTopic, Device, Find, Topic};
use crate::plan::template::Template;

pub(super) const QOS: u32 = 1;

/// One entry of `devices:`.
pub(super) fn device(
    name: &str,
    at: &At<'_>,
    names: &Names,
    identities: &[IdentitySet],
) -> Option<Device> {
    let mut fields = at.fields()?;
    let version = session::version(&mut fields);
    let identity = fields
        .get("identity")
        .and_then(|at| identities::row(&at, names));
    let mut who = names.columns_of(identity);
    who.push("serial");
    let serial = names.placeholders(&who);
    let shards = fields
        .need("shards")
        .map(|at| shards(&at, names))
        .unwrap_or_default();
    let find = fields
        .get("find")
        .and_then(|at| find::find(&at, names, &who));
    find::check(&fields, find.as_ref(), shards.len(), version);
    let client_id = client_id(&mut fields, &serial);
    let (username, password) = login(&mut fields, &serial, version);
    let spoken = session::spoken(&mut fields, names, &who, version);
    let telemetry = fields
        .get("telemetry")
        .and_then(|at| topic(&at, names, &who));
    let command = fields
        .get("command")
        .and_then(|at| command_topic(&at, names, &who, version));
    let answer = answer(&mut fields, names, &who, version);
    let ghost = witness::ghost(&mut fields, shards.len());
    let live_sessions = fields
        .get("live_sessions")
        .and_then(|at| witness::live_sessions(&at, names));
    let throttle = fields.get("throttle").and_then(|at| throttle(&at));
    let tls = fields
        .get("tls")
        .and_then(|at| tls::tls(&at, names, &who))
        .unwrap_or_default();
    fields.finish(&[]);
    let mut device = Device {
        name: name.to_owned(),
        throttle,
        ghost,
        live_sessions,
        shards,
        find: find.unwrap_or(Find::Balancer),
        client_id,
        username,
        password,
        version,
        session: spoken.session,
        will: spoken.will,
        authentication: spoken.authentication,
        telemetry,
        command,
        answer,
        identity,
        tls,
    };
    tls::settle(&mut device, at, identities);
    Some(device)
}

fn client_id(fields: &mut Fields<'_>, known: &Placeholders<'_>) -> Template {
    let text = fields.get("client_id").and_then(|at| {
        let template = at.template(known)?;
        tells_hubs_apart(
            &at,
            &template,
            "hubs with one client id take each other's sessions",
        );
        Some(template)
    });
    text.unwrap_or_else(serial_template)
}

fn answer(
    fields: &mut Fields<'_>,
    names: &Names,
    who: &[&str],
    version: MqttVersion,
) -> Option<Publishing> {
    let answer = fields
        .get("answer")
        .and_then(|at| answer_topic(&at, names, who, version));
    if answer.is_some() && !fields.has("command") {
        fields.at().find(&["answer"]).wrong_key(
            "an answer without a command",
            "add `command: { topic: …, id: { json: $.id } }`",
        );
    }
    answer
}

fn login(
    fields: &mut Fields<'_>,
    known: &Placeholders<'_>,
    version: MqttVersion,
) -> (Option<Template>, Option<Template>) {
    let username = fields.get("username").and_then(|at| at.template(known));
    let password = fields.get("password").and_then(|at| at.template(known));
    let needs_username = version == MqttVersion::V311;
    if needs_username && password.is_some() && username.is_none() && !fields.has("username") {
        fields.at().find(&["password"]).wrong_key(
            "a password without a username",
            "add `username: …`; MQTT 3.1.1 wants both",
        );
    }
    (username, password)
}

fn serial_template() -> Template {
    Template::parse("<serial>").unwrap_or_default()
}

/// `{ connects: 500/s }`
fn throttle(at: &At<'_>) -> Option<f64> {
    let mut fields = at.fields()?;
    let connects_at = fields.need("connects");
    let connects = connects_at.as_ref().and_then(|at| at.rate());
    if let (Some(at), Some(0.0)) = (connects_at, connects) {
        at.wrong(
            "a target that takes no connects",
            "write how many it takes, such as `500/s`",
        );
    }
    fields.finish(&[]);
    connects
}

/// A text that must differ from hub to hub.
fn tells_hubs_apart(at: &At<'_>, template: &Template, why: &str) {
    // A column of the identities tells them apart as well.
    if !template.names().any(|name| !name.contains('.')) {
        at.wrong(
            format!("the same for every hub: {why}"),
            "put `<serial>` into it",
        );
    }
}

fn shards(at: &At<'_>, names: &Names) -> Vec<(String, Template)> {
    let entries = at.named().unwrap_or_default();
    entries
        .iter()
        .map(|(name, at)| {
            let template = at.template(&names.host_placeholders());
            if let Some(template) = &template {
                address::check_mqtt(at, template);
            }
            ((*name).to_owned(), template.unwrap_or_default())
        })
        .collect()
}

pub(super) fn qos(fields: &mut Fields<'_>) -> u8 {
    let qos = fields.get("qos").and_then(|at| at.count32(0..=QOS));
    qos.and_then(|qos| u8::try_from(qos).ok()).unwrap_or(0)
}

/// A topic to publish to, without wildcards.
pub(super) fn topic_text(at: &At<'_>, names: &Names, agent: &[&str]) -> Option<Template> {
    let template = at.template(&names.placeholders(agent))?;
    if template.to_string().contains(['#', '+']) {
        at.wrong(
            "a topic with a wildcard",
            "name one topic; `<serial>` stands for the hub's serial number",
        );
        return None;
    }
    Some(template)
}

fn topic(at: &At<'_>, names: &Names, who: &[&str]) -> Option<Topic> {
    let mut fields = at.fields()?;
    let topic = fields
        .need("topic")
        .and_then(|at| topic_text(&at, names, who));
    let qos = qos(&mut fields);
    fields.finish(&[]);
    Some(Topic { topic: topic?, qos })
}

fn command_topic(
    at: &At<'_>,
    names: &Names,
    who: &[&str],
    version: MqttVersion,
) -> Option<CommandTopic> {
    let mut fields = at.fields()?;
    let topic = fields.need("topic").and_then(|at| {
        let topic = topic_text(&at, names, who)?;
        tells_hubs_apart(&at, &topic, "each would take the commands of all");
        Some(topic)
    });
    let qos = qos(&mut fields);
    let id = fields
        .need("id")
        .and_then(|at| message::id_place(&at, version));
    fields.finish(&[]);
    Some(CommandTopic {
        topic: topic?,
        qos,
        id: id?,
    })
}

/// `$.a.b[0]`
pub(super) fn json_path(at: &At<'_>) -> Option<JsonPath> {
    let text = at.text()?;
    match JsonPath::parse(text) {
        Ok(path) => Some(path),
        Err(error) => {
            at.wrong(
                error.to_string(),
                "write a path from the root: `$.id` or `$.bikes[0].id`",
            );
            None
        }
    }
}

fn answer_topic(
    at: &At<'_>,
    names: &Names,
    who: &[&str],
    version: MqttVersion,
) -> Option<Publishing> {
    let known = [who, &IDS].concat();
    let mut fields = at.fields()?;
    let topic = fields.need("topic");
    let answer = message::publishing(&mut fields, topic, names, &known, Some(version));
    fields.finish(&[]);
    answer
}
