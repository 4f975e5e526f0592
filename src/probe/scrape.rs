//! Asks every instance of every source at a steady beat, on a thread of its own.
//!
//! Rounds begin at whole intervals of the run's clock and never overlap: a beat that comes while a round is still out is left out.
//! One connection per instance is opened by the first round, before there is load, and kept.

use super::extract::{Extractor, UnknownSource};
use crate::event::{Offset, Outcome};
use crate::measure::pool::{Gap, GapReason, Reading, Sample};
use crate::net::clock::Clock;
use crate::net::hosts::Hosts;
use crate::net::http::{Answer, Http, NoClient};
use crate::plan::target::{Answer as Expected, Method, ProbeSource, Request};
use crate::plan::{Plan, Template};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Without it a target may answer in OpenMetrics, where counters are named otherwise.
const ACCEPT: &str = "text/plain;version=0.0.4";

/// One connection for each instance; two may share a host and port.
const IDLE_CONNECTIONS: usize = 8;

/// A probe that can't be started.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error(transparent)]
    UnknownSource(#[from] UnknownSource),
    #[error("the probe can't start: {0}")]
    NoClient(#[from] NoClient),
    #[error("the probe can't start its thread: {0}")]
    NoThread(#[from] io::Error),
}

/// A probe that runs. Dropping it ends it without a last round.
#[derive(Debug)]
pub struct ProbeHandle {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// Where samples go. Called on the probe's thread; must not block.
pub type Deliver = Arc<dyn Fn(Sample) + Send + Sync>;

/// Starts to read all sources of the plan; the first round is asked for at once. Without sources nothing runs.
///
/// # Errors
/// If a source names something unknown, or no client or thread can be had.
pub fn start(
    plan: &Plan,
    hosts: &Arc<Hosts>,
    clock: Clock,
    deliver: Deliver,
) -> Result<ProbeHandle, ProbeError> {
    let probes = &plan.target.probes;
    let (stop, stopped) = watch::channel(false);
    let timeout = probes.timeout.min(probes.every.mul_f64(0.9));
    let http = Http::new(Arc::clone(hosts), IDLE_CONNECTIONS, timeout)?;
    let mut sources = Vec::new();
    for (row, source) in probes.sources.iter().enumerate() {
        let extractor = Arc::new(Extractor::of(source)?);
        let requests = requests(source);
        let (deliver, http) = (Arc::clone(&deliver), http.clone());
        sources.push(Source {
            row,
            requests,
            extractor,
            http,
            timeout,
            every: probes.every,
            clock,
            deliver,
        });
    }
    if sources.is_empty() {
        return Ok(ProbeHandle { stop, thread: None });
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let thread = std::thread::Builder::new()
        .name("probe".to_owned())
        .spawn(move || run(&runtime, sources, &stopped))?;
    Ok(ProbeHandle {
        stop,
        thread: Some(thread),
    })
}

impl ProbeHandle {
    /// Asks every source once more, so that the counters of the last moments are read, and ends. Blocks for a probe's timeout
    /// at most.
    pub fn stop(mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A probe that panicked has left gaps, which the verdict sees.
            let _ = thread.join();
        }
    }
}

fn run(runtime: &Runtime, sources: Vec<Source>, stopped: &watch::Receiver<bool>) {
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for source in sources {
            tasks.spawn(source.keep_asking(stopped.clone()));
        }
        while tasks.join_next().await.is_some() {}
    });
}

/// One source and how it is asked.
struct Source {
    row: usize,
    requests: Vec<Request>,
    extractor: Arc<Extractor>,
    http: Http,
    timeout: Duration,
    every: Duration,
    clock: Clock,
    deliver: Deliver,
}

impl Source {
    async fn keep_asking(self, mut stopped: watch::Receiver<bool>) {
        loop {
            self.round().await;
            let beat = self.next_beat(self.clock.now());
            tokio::select! {
                () = tokio::time::sleep_until(self.clock.instant(beat)) => {}
                asked_to_stop = async { stopped.wait_for(|stop| *stop).await.is_ok() } => {
                    if asked_to_stop {
                        self.round().await;
                    }
                    return;
                }
            }
        }
    }

    /// The first whole interval of the clock after `now`.
    fn next_beat(&self, now: Offset) -> Offset {
        let every = u64::try_from(self.every.as_micros())
            .unwrap_or(u64::MAX)
            .max(1);
        Offset((now.0 / every + 1).saturating_mul(every))
    }

    /// Asks all instances at the same time and tells what they said.
    async fn round(&self) {
        let at = self.clock.now();
        let mut instances = Vec::with_capacity(self.requests.len());
        let mut asked = JoinSet::new();
        for (instance, request) in self.requests.iter().enumerate() {
            let (http, extractor, request) = (
                self.http.clone(),
                Arc::clone(&self.extractor),
                request.clone(),
            );
            let (timeout, clock) = (self.timeout, self.clock);
            asked.spawn(async move {
                (
                    instance,
                    ask(&http, &extractor, &request, timeout, clock).await,
                )
            });
            instances.push(Err(Gap {
                reason: GapReason::Unreadable,
                detail: format!("{}: the reader broke down", self.requests[instance].url),
            }));
        }
        while let Some(answered) = asked.join_next().await {
            if let Ok((instance, reading)) = answered {
                instances[instance] = reading;
            }
        }
        (self.deliver)(Sample {
            source: self.row,
            at,
            instances,
        });
    }
}

async fn ask(
    http: &Http,
    extractor: &Extractor,
    request: &Request,
    timeout: Duration,
    clock: Clock,
) -> Result<Reading, Gap> {
    let began = clock.now();
    // Every name was resolved before the run: what is left over is a mistake of the target file.
    let prepared = http
        .prepare(request, &mut |_, _| false, timeout)
        .map_err(|error| Gap {
            reason: GapReason::Unreachable,
            detail: error.to_string(),
        })?;
    let answer = http.exchange(prepared, request.method, timeout).await;
    let middle = Offset(began.0.midpoint(clock.now().0));
    let body = body_of(answer, &request.url)?;
    let extracted = extractor.read(&body);
    if extracted.values.is_empty() {
        return Err(Gap {
            reason: GapReason::NothingFound,
            detail: format!(
                "{}: {} bytes, {} bad lines",
                request.url,
                body.len(),
                extracted.bad_lines
            ),
        });
    }
    Ok(Reading {
        at: middle,
        started: extracted.started,
        values: extracted.values,
    })
}

fn body_of(answer: Answer, url: &Template) -> Result<Vec<u8>, Gap> {
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
    Err(Gap {
        reason,
        detail: format!("{url}: {said}"),
    })
}

fn requests(source: &ProbeSource) -> Vec<Request> {
    let request = |url: &Template| Request {
        method: Method::Get,
        url: url.clone(),
        headers: vec![("accept".to_owned(), Template::literal(ACCEPT))],
        bearer: None,
        json: None,
        answer: Expected::default(),
    };
    source.scrape.iter().map(request).collect()
}
