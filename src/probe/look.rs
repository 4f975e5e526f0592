//! One look at every source, told so that a person sees what each probe reads and what it lacks.

use super::ProbeError;
use super::extract::{Extractor, Match};
use super::instance::{self, Instance, Said};
use crate::measure::pool::{Gap, GapReason};
use crate::net::hosts::Hosts;
use crate::net::http::Http;
use crate::plan::probe::{Plays, ProbeSource, Probes};
use crate::plan::signal::Signal;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const IDLE_CONNECTIONS: usize = 2;
/// A source that says nothing at first (retained topics are on their way) is asked again so often, so long apart.
const TRIES: u32 = 4;
const BETWEEN: Duration = Duration::from_millis(250);

/// What one instance of a source said.
#[derive(Debug, Clone)]
pub struct Look {
    pub source: String,
    pub plays: Plays,
    /// Where it is, without a secret.
    pub place: String,
    pub seen: Result<Sight, String>,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct Sight {
    pub found: Vec<Match>,
    /// With the connection that had to be opened, and by one that stood.
    pub first: Duration,
    pub again: Duration,
    pub bytes: u64,
    pub bad_lines: u64,
    pub duplicate_lines: u64,
    /// What can't be known, and why that matters.
    pub lacks: Vec<&'static str>,
}

/// Looks at every source.
///
/// # Errors
/// If a source names something unknown or no client can be had; what can't be reached is part of the answer.
pub async fn look(probes: &Probes, hosts: &Arc<Hosts>) -> Result<Vec<Look>, ProbeError> {
    let http = Http::new(Arc::clone(hosts), IDLE_CONNECTIONS, probes.timeout)?;
    let mut looks = Vec::new();
    for source in &probes.sources {
        let extractor = Extractor::of(source)?;
        for mut instance in instance::all_of(source, &http, hosts)? {
            let seen = sight(source, &mut instance, &extractor, probes.timeout).await;
            looks.push(Look {
                source: source.name.clone(),
                plays: source.plays,
                place: instance.place().to_owned(),
                seen: seen.map_err(|gap| format!("{}: {}", gap.reason.name(), gap.detail)),
            });
        }
    }
    Ok(looks)
}

async fn sight(
    source: &ProbeSource,
    instance: &mut Instance,
    extractor: &Extractor,
    timeout: Duration,
) -> Result<Sight, Gap> {
    let (mut said, first) = timed(instance, extractor, timeout).await;
    for _ in 1..TRIES {
        if !matches!(&said, Err(gap) if gap.reason == GapReason::NothingFound) {
            break;
        }
        sleep(BETWEEN).await;
        said = timed(instance, extractor, timeout).await.0;
    }
    said?;
    let (said, again) = timed(instance, extractor, timeout).await;
    let said = said?;
    let found = extractor.explain(said.series);
    if found.is_empty() {
        return Err(Gap {
            reason: GapReason::NothingFound,
            detail: format!(
                "{}: {} bytes, {} bad lines; looked for {}",
                instance.place(),
                said.bytes,
                said.bad_lines,
                wanted(extractor)
            ),
        });
    }
    Ok(Sight {
        lacks: lacks(source.plays, &found),
        found,
        first,
        again,
        bytes: said.bytes,
        bad_lines: said.bad_lines,
        duplicate_lines: said.duplicate_lines,
    })
}

async fn timed(
    instance: &mut Instance,
    extractor: &Extractor,
    timeout: Duration,
) -> (Result<Said, Gap>, Duration) {
    let began = Instant::now();
    let said = instance.ask(extractor, timeout).await;
    (said, began.elapsed())
}

fn wanted(extractor: &Extractor) -> String {
    let mut metrics: Vec<&str> = extractor
        .metrics()
        .filter(|name| *name != super::extract::STARTED)
        .collect();
    metrics.sort_unstable();
    metrics.join(", ")
}

/// What a pool's or broker's signals leave open.
fn lacks(plays: Plays, found: &[Match]) -> Vec<&'static str> {
    let has = |signal: Signal| found.iter().any(|one| one.signal == signal);
    let mut lacks = Vec::new();
    let mut lack = |is_so: bool, text: &'static str| lacks.extend(is_so.then_some(text));
    match plays {
        Plays::Pool => {
            lack(
                !has(Signal::Wait) && !has(Signal::Arrivals) && !has(Signal::Acquires),
                "no wait and nothing that counts requests: `wait mean` has no data",
            );
            lack(
                !has(Signal::Waiting),
                "no `waiting`: who gives up or still waits is not seen, since counters move only when a wait ends",
            );
            lack(
                !(has(Signal::Saturation) || has(Signal::InUse) && has(Signal::Max)),
                "no `in_use` with `max`: `saturation` has no data",
            );
            let tops = found.iter().filter_map(|one| one.top_bucket_us);
            lack(
                tops.reduce(f64::max).is_none() && !has(Signal::WaitP99),
                "no histogram of waits: `wait p99` has no data",
            );
            lack(
                !has(Signal::Timeouts),
                "no `timeouts`: who gave up is not counted",
            );
        }
        Plays::Broker => {
            lack(
                !has(Signal::Connects),
                "no `connects`: reconnects can't be compared with our own",
            );
            lack(
                !has(Signal::Takeovers),
                "no `takeovers`: a session that was taken over can't be told from one that ended",
            );
        }
        Plays::Queue => lack(
            !has(Signal::Age),
            "no `age`: how long the oldest waits is not seen",
        ),
        Plays::Value => {}
    }
    lacks
}
