//! A probe that runs against some addresses, and everything that it told.

use rushhour::event::Offset;
use rushhour::measure::pool::{PoolSeries, Sample};
use rushhour::net::clock::Clock;
use rushhour::net::hosts::Hosts;
use rushhour::plan::target::{Plays, ProbeSource, Probes, Signals, Target};
use rushhour::plan::{Plan, Template};
use rushhour::probe::{self, ProbeHandle};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub const EVERY: Duration = Duration::from_millis(100);
pub const TIMEOUT: Duration = Duration::from_millis(60);

fn plan(urls: &[String]) -> Plan {
    let source = ProbeSource {
        name: "pool".to_owned(),
        plays: Plays::Pool,
        scrape: urls.iter().map(|url| Template::literal(url)).collect(),
        signals: Signals::Preset("otel-db".to_owned()),
    };
    let probes = Probes {
        every: EVERY,
        timeout: TIMEOUT,
        max_blind: 0.05,
        sources: vec![source],
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
}

impl Running {
    pub fn start(urls: &[String]) -> Running {
        let plan = plan(urls);
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
        let end = self.clock.now();
        let mut series = PoolSeries::new(EVERY);
        for sample in self.samples.lock().unwrap().drain(..) {
            series.add(sample);
        }
        (series, end)
    }
}
