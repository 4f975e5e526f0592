//! A probe that runs against some addresses, and everything that it told.

use rushhour::event::Offset;
use rushhour::measure::pool::{PoolSeries, Sample};
use rushhour::net::clock::Clock;
use rushhour::net::hosts::Hosts;
use rushhour::plan::probe::{Origin, Plays, ProbeSource, Probes, Signals};
use rushhour::plan::target::Target;
use rushhour::plan::{Plan, Template};
use rushhour::probe::{self, ProbeHandle};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub const EVERY: Duration = Duration::from_millis(100);
pub const TIMEOUT: Duration = Duration::from_millis(60);

fn of_urls(urls: &[String]) -> ProbeSource {
    ProbeSource {
        name: "pool".to_owned(),
        plays: Plays::Pool,
        origin: Origin::Scrape(urls.iter().map(|url| Template::literal(url)).collect()),
        labels: Vec::new(),
        signals: Signals::Preset("otel-db".to_owned()),
    }
}

fn plan(sources: Vec<ProbeSource>, every: Duration, timeout: Duration) -> Plan {
    let probes = Probes {
        every,
        timeout,
        max_blind: 0.05,
        sources,
    };
    Plan {
        profile: PathBuf::from("test.yaml"),
        about: String::new(),
        series: None,
        seed: 1,
        duration: Duration::from_secs(1),
        baseline: Duration::from_secs(1),
        sustain: Duration::from_secs(1),
        settle: Duration::ZERO,
        drain: Duration::ZERO,
        target: Target {
            probes,
            ..Target::default()
        },
        hubs: Vec::new(),
        riders: Vec::new(),
        issuers: Vec::new(),
        docks: Vec::new(),
        triggers: Vec::new(),
        faults: Vec::new(),
        steady: Vec::new(),
        stop_if: Vec::new(),
        against: None,
        pause_while: Vec::new(),
        expect: Vec::new(),
        operations: Vec::new(),
    }
}

/// A probe that runs, and everything that it told.
pub struct Running {
    pub handle: Option<ProbeHandle>,
    pub clock: Clock,
    pub samples: Arc<Mutex<Vec<Sample>>>,
    every: Duration,
}

impl Running {
    pub fn start(urls: &[String]) -> Running {
        Running::of(vec![of_urls(urls)], EVERY, TIMEOUT)
    }

    /// The same with sources and times of its own.
    pub fn of(sources: Vec<ProbeSource>, every: Duration, timeout: Duration) -> Running {
        let plan = plan(sources, every, timeout);
        let hosts = Arc::new(Hosts::of(&plan.target).unwrap());
        let samples = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&samples);
        let clock = Clock::start();
        let deliver = Arc::new(move |sample| told.lock().unwrap().push(sample));
        let handle = probe::start(&plan, &hosts, clock, deliver).unwrap();
        Running {
            handle: Some(handle),
            clock,
            samples,
            every,
        }
    }

    /// Waits until `enough` holds for the samples told since `from`; fails after ten seconds.
    pub fn wait(&self, from: usize, what: &str, enough: impl Fn(&[Sample]) -> bool) {
        let begin = Instant::now();
        while !enough(&self.samples.lock().unwrap()[from..]) {
            assert!(
                begin.elapsed() < Duration::from_secs(10),
                "{what}: {:?}",
                self.samples.lock().unwrap().last()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn told(&self) -> usize {
        self.samples.lock().unwrap().len()
    }

    /// Ends the probe and gives everything as one series.
    pub fn series(mut self) -> (PoolSeries, Offset) {
        self.handle.take().unwrap().stop();
        (self.so_far(0), self.clock.now())
    }

    /// What one source said by now.
    pub fn so_far(&self, source: usize) -> PoolSeries {
        let mut series = PoolSeries::new(self.every);
        let samples = self.samples.lock().unwrap();
        for sample in samples.iter().filter(|sample| sample.source == source) {
            series.add(sample.clone());
        }
        series
    }
}
