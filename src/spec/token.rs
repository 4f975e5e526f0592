//! Tokens of a target file: asked for before the load, renewed before they end.

use super::device::json_path;
use super::fields::Fields;
use super::journey::{self, RequestContext};
use super::reader::At;
use super::units;
use crate::plan::json_path::JsonPath;
use crate::plan::target::{Answer, Method, Request};
use crate::plan::template::Template;
use crate::plan::token::{Lasts, TokenSpec};
use std::time::Duration;

/// Unless the file says otherwise.
const RENEW_BEFORE: Duration = Duration::from_secs(30);

/// The grants of OAuth 2 that need nobody in front of a browser (RFC 6749 §4.3 and §4.4).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Grant {
    ClientCredentials,
    Password,
}

/// One entry of `tokens:`.
pub(super) fn token(name: &str, at: &At<'_>, context: &RequestContext<'_>) -> Option<TokenSpec> {
    let mut fields = at.fields()?;
    let renew_before = fields.get("renew").map(|at| renew(&at));
    if let Some(at) = fields.get("per") {
        per(&at);
    }
    let had = match fields.get("oauth2") {
        Some(at) => {
            let had = oauth2(&at, context);
            fields.finish(&[]);
            had
        }
        None => plain(fields, context),
    };
    let (request, form, keep, lasts) = had?;
    let renew_before = renew_before.unwrap_or(Some(RENEW_BEFORE))?;
    if let Lasts::Fixed(lasts) = lasts
        && renew_before >= lasts
    {
        at.find(&["renew"]).wrong(
            "it would be renewed before it is there",
            "renew it later, or let it last longer",
        );
        return None;
    }
    Some(TokenSpec {
        name: name.to_owned(),
        request,
        form,
        keep,
        lasts,
        renew_before,
    })
}

type Had = (Request, Vec<(String, Template)>, JsonPath, Lasts);

/// `{ post: …, client_id: …, client_secret: <secret.…> }`
fn oauth2(at: &At<'_>, context: &RequestContext<'_>) -> Option<Had> {
    let known = context.names.placeholders(&[]);
    let mut fields = at.fields()?;
    let url = fields
        .need("post")
        .and_then(|at| super::address::http(&at, &known, &context.names.host_placeholders(), None));
    let grant = fields.get("grant").map(|at| {
        at.word(&[
            ("client_credentials", Grant::ClientCredentials),
            ("password", Grant::Password),
        ])
    });
    let grant = grant.unwrap_or(Some(Grant::ClientCredentials))?;
    let mut form = vec![(
        "grant_type".to_owned(),
        Template::literal(match grant {
            Grant::ClientCredentials => "client_credentials",
            Grant::Password => "password",
        }),
    )];
    let is_password = grant == Grant::Password;
    let wanted = [
        ("client_id", true),
        ("client_secret", !is_password),
        ("username", is_password),
        ("password", is_password),
        ("scope", false),
        ("audience", false),
    ];
    for (key, is_needed) in wanted {
        let at = if is_needed {
            fields.need(key)
        } else {
            fields.get(key)
        };
        if let Some(at) = &at
            && !is_password
            && ["username", "password"].contains(&key)
        {
            at.wrong_key(
                format!("`{key}` belongs to `grant: password`"),
                "add that, or leave it out",
            );
        }
        form.extend(
            at.and_then(|at| at.template(&known))
                .map(|value| (key.to_owned(), value)),
        );
    }
    fields.finish(&[]);
    let path = |text| JsonPath::parse(text).expect("a path of our own");
    Some((
        Request {
            method: Method::Post,
            url: url?,
            headers: Vec::new(),
            bearer: None,
            json: None,
            answer: Answer::default(),
        },
        form,
        path("$.access_token"),
        Lasts::Stated(path("$.expires_in")),
    ))
}

/// `{ post: …, json: …, keep: $.token, lasts: 1h }`, where `lasts` may be a place in the answer.
fn plain(mut fields: Fields<'_>, context: &RequestContext<'_>) -> Option<Had> {
    let known = context.names.placeholders(&[]);
    let keep = fields.need("keep").and_then(|at| json_path(&at));
    let lasts = fields.need("lasts").and_then(|at| {
        if at.lone_word().is_some_and(|word| word.starts_with('$')) {
            json_path(&at).map(Lasts::Stated)
        } else {
            at.time().map(Lasts::Fixed)
        }
    });
    let request = journey::question(&mut fields, context, &known);
    fields.finish(&[]);
    Some((request?, Vec::new(), keep?, lasts?))
}

/// `30s before expiry`
fn renew(at: &At<'_>) -> Option<Duration> {
    let text = at.text()?;
    let before = text
        .strip_suffix(" before expiry")
        .and_then(|before| units::duration(before.trim()).ok());
    if before.is_none() {
        at.wrong(
            format!("`{text}` is no time to renew a token"),
            "write `30s before expiry`",
        );
    }
    before
}

fn per(at: &At<'_>) {
    match at.lone_word() {
        Some("run") => {}
        Some("account") => at.wrong(
            "a token for each account is not supported in this version",
            "write `per: run`, or log in with a step of the journey that keeps its token",
        ),
        _ => at.wrong("unknown; expected `run`", "write `per: run`"),
    }
}
