//! A pair of requests of our own, one that needs the database and one to the same service that does not: what the first takes longer
//! than the second, beyond what it always does, is taken for the wait for a connection.
//!
//! Inferred, not read. If both get slower it is not the pool but the service itself, and nothing is told as a wait.

use super::prometheus::Series;
use crate::event::Outcome;
use crate::measure::pool::{Gap, GapReason};
use crate::net::http::Http;
use crate::plan::target::Request;
use std::time::Duration;
use tokio::time::Instant;

/// The name of the series that is made of the pair, in microseconds.
pub const WAIT: &str = "canary_wait_us";
/// Pairs from whose differences the usual one is taken: the first of a run, before and at the begin of the load.
const USUAL: usize = 10;

/// The pair, and by how much its answers differ when all is well.
pub(super) struct Canary {
    http: Http,
    with: Request,
    without: Request,
    usual_us: Vec<f64>,
}

impl Canary {
    pub fn new(http: Http, with: Request, without: Request) -> Canary {
        Canary {
            http,
            with,
            without,
            usual_us: Vec::new(),
        }
    }

    /// Sends both at the same time. An answer that does not come in time took at least that long, which is told; without the
    /// request that needs no database nothing can be told.
    pub async fn read(&mut self, timeout: Duration) -> Result<Vec<Series>, Gap> {
        let (with, without) = tokio::join!(
            latency(&self.http, &self.with, timeout),
            latency(&self.http, &self.without, timeout)
        );
        let without_us = without?;
        let with_us = match with {
            Err(gap) if gap.reason == GapReason::TimedOut => timeout.as_micros() as f64,
            other => other?,
        };
        let difference_us = with_us - without_us;
        if self.usual_us.len() < USUAL {
            self.usual_us.push(difference_us);
            self.usual_us.sort_by(f64::total_cmp);
        }
        // A quarter up: where the load begins meanwhile, most of these pairs are slower than usual.
        let usual_us = self.usual_us[self.usual_us.len() / 4];
        Ok(vec![Series {
            name: WAIT.to_owned(),
            labels: Vec::new(),
            value: (difference_us - usual_us).max(0.0),
        }])
    }
}

/// How long one request takes, in microseconds.
async fn latency(http: &Http, request: &Request, timeout: Duration) -> Result<f64, Gap> {
    let gap = |reason, why: String| Gap {
        reason,
        detail: format!("{}: {why}", request.url),
    };
    let prepared = http
        .prepare(request, &mut |_, _| false, timeout)
        .map_err(|error| gap(GapReason::Unreachable, error.to_string()))?;
    let began = Instant::now();
    let answer = http.exchange(prepared, request.method, timeout).await;
    match answer.result {
        Ok(status) if (200..300).contains(&status) => Ok(began.elapsed().as_micros() as f64),
        // A quick refusal says nothing about a wait.
        Ok(status) => Err(gap(GapReason::Refused, format!("status {status}"))),
        Err(Outcome::TimedOut) => Err(gap(GapReason::TimedOut, "no answer in time".to_owned())),
        Err(outcome) => Err(gap(GapReason::Unreachable, answer.in_words(outcome))),
    }
}
