//! One thing that is asked: an address, a connection that is held, a program. Whatever it is, its answer becomes series.

use super::canary::Canary;
use super::command;
use super::extract::Extractor;
use super::json;
use super::postgres::{Asks, Session};
use super::prometheus::{Series, scan};
use super::sys::Sys;
use crate::event::Outcome;
use crate::measure::pool::{Gap, GapReason};
use crate::net::hosts::Hosts;
use crate::net::http::{Answer, Http};
use crate::plan::probe::{Origin, ProbeSource};
use crate::plan::target::{Answer as Expected, Method, Request};
use crate::plan::template::Template;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Without it a target may answer in OpenMetrics, where counters are named otherwise.
const TEXT: &str = "text/plain;version=0.0.4";
const JSON: &str = "application/json";

/// A source whose address can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("probes.sources.{source_name}.{key}: {why}")]
pub struct BadSource {
    source_name: String,
    key: &'static str,
    why: String,
}

/// What one answer said.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub series: Vec<Series>,
    pub bytes: u64,
    pub bad_lines: u64,
    pub duplicate_lines: u64,
}

impl From<Vec<Series>> for Said {
    fn from(series: Vec<Series>) -> Said {
        Said {
            series,
            ..Said::default()
        }
    }
}

/// One thing that is asked.
pub(super) struct Instance {
    place: String,
    way: Way,
}

enum Way {
    Text(Http, Request),
    Json(Http, Request),
    /// Queries by their names.
    PromQl(Http, Vec<(String, Request)>),
    Postgres(Box<Session>),
    Sys(Sys),
    Canary(Box<Canary>),
    Command(Vec<String>),
}

/// Every instance of a source, none of them contacted yet.
///
/// # Errors
/// If an address can't be read.
pub(super) fn all_of(
    source: &ProbeSource,
    http: &Http,
    hosts: &Arc<Hosts>,
) -> Result<Vec<Instance>, BadSource> {
    let bad = |why: String| BadSource {
        source_name: source.name.clone(),
        key: source.origin.key(),
        why,
    };
    let session = |at: &Template, asks: Asks| {
        let session = Session::new(&plain(at), asks, hosts).map_err(bad)?;
        Ok(Way::Postgres(Box::new(session)))
    };
    let one = |place: String, way: Way| vec![Instance { place, way }];
    let each = |all: &[Template], accept: &str, way: &dyn Fn(Http, Request) -> Way| {
        let instance = |url: &Template| Instance {
            place: url.to_string(),
            way: way(http.clone(), get(url.clone(), accept)),
        };
        all.iter().map(instance).collect()
    };
    let place = format!("probes.sources.{}", source.name);
    Ok(match &source.origin {
        Origin::Scrape(all) => each(all, TEXT, &Way::Text),
        Origin::Json(all) => each(all, JSON, &Way::Json),
        Origin::Sql { at, query } => {
            let asks = query.clone().map_or(Asks::Database, Asks::Query);
            one(place, session(at, asks)?)
        }
        Origin::Console(at) => one(place, session(at, Asks::Console)?),
        Origin::Sys(at) => {
            let sys = Sys::new(&at.to_string(), hosts).map_err(bad)?;
            one(at.to_string(), Way::Sys(sys))
        }
        Origin::PromQl { at, queries } => {
            let query = |(name, text): &(String, String)| {
                let url = Template::literal(&query_address(&at.to_string(), text));
                (name.clone(), get(url, JSON))
            };
            let queries = queries.iter().map(query).collect();
            one(at.to_string(), Way::PromQl(http.clone(), queries))
        }
        Origin::Canary { with, without } => {
            let of = |url: &Template| get(url.clone(), "*/*");
            let canary = Canary::new(http.clone(), of(with), of(without));
            one(with.to_string(), Way::Canary(Box::new(canary)))
        }
        Origin::Command(words) => {
            let words: Vec<String> = words.iter().map(plain).collect();
            // Its arguments may hold a secret.
            let program = words.first().cloned().unwrap_or_default();
            one(program, Way::Command(words))
        }
    })
}

impl Instance {
    /// Where it is, without a secret.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Asks once and waits at most `timeout`.
    pub async fn ask(&mut self, extractor: &Extractor, timeout: Duration) -> Result<Said, Gap> {
        let place = self.place.clone();
        let asked = tokio::time::timeout(timeout, self.answer(extractor, timeout)).await;
        asked.unwrap_or_else(|_| {
            if let Way::Postgres(session) = &mut self.way {
                session.give_up();
            }
            Err(gap(GapReason::TimedOut, &place, &"no answer in time"))
        })
    }

    async fn answer(&mut self, extractor: &Extractor, timeout: Duration) -> Result<Said, Gap> {
        let place = &self.place;
        match &mut self.way {
            Way::Text(http, request) => Ok(text(
                &fetch(http, request, place, timeout).await?,
                extractor,
            )),
            Way::Json(http, request) => {
                let body = fetch(http, request, place, timeout).await?;
                let document = serde_json::from_slice(&body)
                    .map_err(|error| gap(GapReason::Unreadable, place, &error))?;
                Ok(Said {
                    bytes: body.len() as u64,
                    ..Said::from(json::at_paths(&document, extractor.metrics()))
                })
            }
            Way::PromQl(http, queries) => {
                let mut said = Said::default();
                for (name, request) in queries {
                    let body = fetch(http, request, place, timeout).await?;
                    let series = json::of_query(name, &body)
                        .map_err(|error| gap(GapReason::Unreadable, place, &error))?;
                    said.series.extend(series);
                    said.bytes += body.len() as u64;
                }
                Ok(said)
            }
            Way::Postgres(session) => Ok(Said::from(session.read().await?)),
            Way::Sys(sys) => Ok(Said::from(sys.read().await?)),
            // Within the limit of the whole reading, so that what was seen by then is told.
            Way::Canary(canary) => Ok(Said::from(canary.read(timeout.mul_f64(0.9)).await?)),
            Way::Command(words) => Ok(text(&command::output(words).await?, extractor)),
        }
    }
}

fn text(body: &[u8], extractor: &Extractor) -> Said {
    let scan = scan(body, |name| extractor.wants(name));
    Said {
        series: scan.series,
        bytes: body.len() as u64,
        bad_lines: scan.bad_lines,
        duplicate_lines: scan.duplicate_lines,
    }
}

async fn fetch(
    http: &Http,
    request: &Request,
    place: &str,
    timeout: Duration,
) -> Result<Vec<u8>, Gap> {
    // Every name was resolved before the run: what is left over is a mistake of the target file.
    let prepared = http
        .prepare(request, &mut |_, _| false, timeout)
        .map_err(|error| gap(GapReason::Unreachable, place, &error))?;
    body_of(
        http.exchange(prepared, request.method, timeout).await,
        place,
    )
}

fn body_of(answer: Answer, place: &str) -> Result<Vec<u8>, Gap> {
    let (reason, said) = match answer.result {
        Ok(200) => return Ok(answer.body),
        Ok(status) => (GapReason::Refused, format!("status {status}")),
        Err(Outcome::TimedOut) => (GapReason::TimedOut, "no answer in time".to_owned()),
        Err(Outcome::Protocol) => (
            GapReason::Unreadable,
            "no HTTP, or a body above 16 MiB".to_owned(),
        ),
        Err(outcome) => (GapReason::Unreachable, answer.in_words(outcome)),
    };
    Err(gap(reason, place, &said))
}

fn gap(reason: GapReason, place: &str, said: &dyn fmt::Display) -> Gap {
    Gap {
        reason,
        detail: format!("{place}: {said}"),
    }
}

fn get(url: Template, accept: &str) -> Request {
    Request {
        method: Method::Get,
        url,
        headers: vec![("accept".to_owned(), Template::literal(accept))],
        bearer: None,
        json: None,
        answer: Expected::default(),
    }
}

/// An instant query's address at a Prometheus server.
fn query_address(at: &str, query: &str) -> String {
    let mut address = format!("{}/api/v1/query?query=", at.trim_end_matches('/'));
    crate::net::http::percent_encode(query, &mut address);
    address
}

/// The text itself: every name was resolved before.
fn plain(word: &Template) -> String {
    let mut text = String::new();
    let rendered = word.render_into(&mut text, |_, _| false);
    debug_assert!(rendered.is_ok(), "every name is known");
    text
}
