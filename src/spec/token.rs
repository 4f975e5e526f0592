//! Tokens of a target file: asked for before the load, renewed before they end.

use super::device::json_path;
use super::fields::Fields;
use super::identities;
use super::journey::{self, RequestContext};
use super::reader::At;
use super::units;
use super::words::Placeholders;
use crate::plan::json_path::JsonPath;
use crate::plan::target::{Answer, CommandSend, Method, Request, Target};
use crate::plan::template::Template;
use crate::plan::token::{Lasts, Per, TokenSpec};
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
    let per = per(&mut fields, context);
    let who = match per {
        Per::Account(set) => context.names.columns_of(Some(set)),
        Per::Run => Vec::new(),
    };
    let known = context.names.placeholders(&who);
    let had = match fields.get("oauth2") {
        Some(at) => {
            let had = oauth2(&at, context, &known);
            fields.finish(&[]);
            had
        }
        None => plain(fields, context, &known),
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
        per,
    })
}

type Had = (Request, Vec<(String, Template)>, JsonPath, Lasts);

/// `{ post: …, client_id: …, client_secret: <secret.…> }`
fn oauth2(at: &At<'_>, context: &RequestContext<'_>, known: &Placeholders<'_>) -> Option<Had> {
    let mut fields = at.fields()?;
    let url = fields
        .need("post")
        .and_then(|at| super::address::http(&at, known, &context.names.host_placeholders(), None));
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
            at.and_then(|at| at.template(known))
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
fn plain(
    mut fields: Fields<'_>,
    context: &RequestContext<'_>,
    known: &Placeholders<'_>,
) -> Option<Had> {
    let keep = fields.need("keep").and_then(|at| json_path(&at));
    let lasts = fields.need("lasts").and_then(|at| {
        if at.lone_word().is_some_and(|word| word.starts_with('$')) {
            json_path(&at).map(Lasts::Stated)
        } else {
            at.time().map(Lasts::Fixed)
        }
    });
    let request = journey::question(&mut fields, context, known);
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

/// `per: run`, or `per: account, identity: riders`
fn per(fields: &mut Fields<'_>, context: &RequestContext<'_>) -> Per {
    let is_account = fields
        .get("per")
        .and_then(|at| at.word(&[("run", false), ("account", true)]));
    let identity_at = fields.get("identity");
    let set = identity_at
        .as_ref()
        .and_then(|at| identities::row(at, context.names));
    match (is_account, identity_at, set) {
        (Some(true), Some(_), Some(set)) => Per::Account(set),
        (Some(true), None, _) => {
            fields.at().find(&["per"]).wrong(
                "a token for each account, and nothing says whose accounts",
                "add `identity: …`, a name of `identities:`",
            );
            Per::Run
        }
        (Some(false) | None, Some(at), _)
            if !fields.at().has_key("per") || is_account.is_some() =>
        {
            at.wrong_key(
                "`identity` belongs to `per: account`",
                "add that, or leave it out",
            );
            Per::Run
        }
        _ => Per::Run,
    }
}

/// A token for each account is only for journeys of those accounts, and never for commands.
pub(super) fn check(root: &At<'_>, target: &Target) {
    for token in &target.tokens {
        let Per::Account(set) = token.per else {
            continue;
        };
        let carries = |request: &Request| token.is_in(request);
        for journey in &target.journeys {
            let is_carried = journey.requests().any(|(_, request)| carries(request));
            if is_carried && journey.identity != Some(set) {
                let name = &target.identities[set].name;
                root.find(&["journeys", &journey.name]).wrong_key(
                    format!(
                        "its requests carry <token.{}>, which is for accounts of `{name}`, and its riders have none of them",
                        token.name
                    ),
                    format!("add `identity: {name}` to the journey"),
                );
            }
        }
        for command in &target.commands {
            if let CommandSend::Http(request) = &command.send
                && carries(request)
            {
                root.find(&["commands", &command.name]).wrong_key(
                    format!(
                        "it carries <token.{}>, which is for accounts of riders",
                        token.name
                    ),
                    "use a token with `per: run`",
                );
            }
        }
    }
}
