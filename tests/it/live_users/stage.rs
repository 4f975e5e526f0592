//! A plan with one group of riders, the run of it, and what was told.

use rushhour::arrivals::{Piece, Schedule, Spread};
use rushhour::event::{Event, Offset, OperationId, Outcome, Sink};
use rushhour::live::tokens::Tokens;
use rushhour::live::users::UserFleet;
use rushhour::net::clock::Clock;
use rushhour::net::hosts::Hosts;
use rushhour::plan::places::Choice;
use rushhour::plan::target::{Answer, Journey, Method, Repeat, Request, Step, StepAction};
use rushhour::plan::{Plan, RiderGroup, Target, Template, operation};
use rushhour::retry::Retry;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Once only.
pub const NO_RETRY: Retry = Retry::NEVER;

pub fn template(text: &str) -> Template {
    Template::parse(text).expect("the template can be read")
}

pub fn request(method: Method, url: &str) -> Request {
    Request {
        method,
        url: template(url),
        headers: Vec::new(),
        bearer: None,
        json: None,
        answer: Answer::default(),
    }
}

pub fn step(name: &str, request: Request) -> Step {
    Step {
        name: name.to_owned(),
        action: StepAction::Request(request),
        repeat: Repeat::Once,
    }
}

/// A plan in which `per_second` riders a second take these steps for `lasts`.
pub fn plan(steps: Vec<Step>, per_second: f64, lasts: Duration) -> Plan {
    let target = Target {
        journeys: vec![Journey {
            name: "ride".to_owned(),
            steps,
            ..Journey::default()
        }],
        ..Target::default()
    };
    let pieces = vec![Piece {
        from_per_second: per_second,
        to_per_second: per_second,
        lasts,
    }];
    let riders = vec![RiderGroup {
        name: "commuters".to_owned(),
        journey: 0,
        arrivals: Schedule::new(Spread::Even, pieces),
        timeout: Duration::from_secs(10),
        retry: NO_RETRY,
        max_in_flight: 500,
        identity: None,
        places: Choice::Even,
        idempotency: true,
    }];
    let operations = operation::table(&[], &riders, &[], &target);
    Plan {
        profile: PathBuf::from("test.yaml"),
        about: String::new(),
        series: None,
        seed: 42,
        duration: lasts,
        baseline: Duration::ZERO,
        sustain: Duration::ZERO,
        settle: Duration::ZERO,
        drain: Duration::ZERO,
        target,
        hubs: Vec::new(),
        riders,
        issuers: Vec::new(),
        docks: Vec::new(),
        triggers: Vec::new(),
        faults: Vec::new(),
        steady: Vec::new(),
        stop_if: Vec::new(),
        against: None,
        pause_while: Vec::new(),
        expect: Vec::new(),
        operations,
    }
}

/// Everything that was told, in order.
#[derive(Clone, Default)]
pub struct Told(Arc<Mutex<Vec<Event>>>);

impl Told {
    pub fn sink(&self) -> Sink {
        let told = self.clone();
        Arc::new(move |event| told.0.lock().expect("no test panics here").push(event))
    }

    pub fn events(&self) -> Vec<Event> {
        self.0.lock().expect("no test panics here").clone()
    }

    fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.events().iter().filter(|event| is(event)).count()
    }

    pub fn started(&self, row: u16) -> usize {
        self.count(|event| matches!(event, Event::Started { operation, .. } if operation.0 == row))
    }

    pub fn attempted(&self, row: u16) -> usize {
        self.count(
            |event| matches!(event, Event::Attempted { operation, .. } if operation.0 == row),
        )
    }

    pub fn answered(&self, row: u16, with: Outcome) -> usize {
        self.count(|event| {
            matches!(event, Event::Answered { operation, outcome, .. } if operation.0 == row && *outcome == with)
        })
    }

    pub fn finished(&self, row: u16, with: Outcome) -> usize {
        self.count(|event| {
            matches!(event, Event::Finished { operation, outcome, .. } if operation.0 == row && *outcome == with)
        })
    }

    /// How often each outcome was answered, whatever the operation.
    pub fn outcomes(&self) -> BTreeMap<String, usize> {
        let mut outcomes = BTreeMap::new();
        for event in self.events() {
            if let Event::Answered { outcome, .. } = event {
                *outcomes.entry(outcome.to_string()).or_default() += 1;
            }
        }
        outcomes
    }

    pub fn all_finished(&self, row: u16) -> usize {
        self.count(|event| matches!(event, Event::Finished { operation, .. } if operation.0 == row))
    }

    /// The ages at the end of what was unfinished.
    pub fn ages(&self, row: u16) -> Vec<Duration> {
        let events = self.events();
        let ages = events.iter().filter_map(|event| match event {
            Event::Unfinished { operation, due, at } if *operation == OperationId(row) => {
                Some(at.since(*due))
            }
            _ => None,
        });
        ages.collect()
    }

    /// From the due time to the start, sorted.
    pub fn lags(&self, row: u16) -> Vec<Duration> {
        let events = self.events();
        let mut lags: Vec<Duration> = events
            .iter()
            .filter_map(|event| match event {
                Event::Started { operation, due, at } if operation.0 == row => Some(at.since(*due)),
                _ => None,
            })
            .collect();
        lags.sort();
        lags
    }

    /// From the due time to the end, sorted.
    pub fn latencies(&self, row: u16) -> Vec<Duration> {
        let events = self.events();
        let mut latencies: Vec<Duration> = events
            .iter()
            .filter_map(|event| match event {
                Event::Finished {
                    operation, due, at, ..
                } if operation.0 == row => Some(at.since(*due)),
                _ => None,
            })
            .collect();
        latencies.sort();
        latencies
    }
}

/// The rows of the operations: the journey, then its steps.
pub const JOURNEY: u16 = 0;
pub const FIRST_STEP: u16 = 1;

/// As in the program: Goose's own logger, which writes a line for each failed request, must not be the first.
struct Silence;

impl log::Log for Silence {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        false
    }

    fn log(&self, _: &log::Record<'_>) {}

    fn flush(&self) {}
}

/// A fleet whose `0:00` is now.
pub async fn begin(plan: &Arc<Plan>, told: &Told) -> (UserFleet, Clock, Offset) {
    // Every test after the first finds it set.
    let _ = log::set_logger(&Silence);
    let hosts = Arc::new(Hosts::of(&plan.target).expect("the hosts of the plan can be read"));
    let clock = Clock::start();
    let fleet = UserFleet::start(
        plan,
        &hosts,
        clock,
        "run",
        &[told.sink()],
        &rushhour::live::docks::Inboxes::default(),
        &Tokens::default(),
    )
    .await
    .expect("the riders can start");
    let zero = clock.now();
    fleet.begin(zero);
    (fleet, clock, zero)
}

/// Runs the plan's load and its drain; gives back how long the stop took.
pub async fn run(plan: Plan, told: &Told) -> Duration {
    let plan = Arc::new(plan);
    let (fleet, clock, zero) = begin(&plan, told).await;
    tokio::time::sleep_until(clock.instant(zero.after(plan.duration))).await;
    let stopped = clock.now();
    fleet.stop(stopped.after(plan.drain)).await;
    clock.now().since(stopped)
}
