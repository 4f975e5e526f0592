//! A small plan, and a run told by hand, second by second.

use rushhour::arrivals::{Schedule, Spread};
use rushhour::event::{
    CommandId, CommandStep, Event, HubChange, Mark, MarkId, MarkPhase, Offset, OperationId, Outcome,
};
use rushhour::measure::{Collector, Judge, Judgement, Second, Shard};
use rushhour::plan::expect::{Comparison, Expectation, Limit, Scope, Subject, Unit};
use rushhour::plan::fault::{Disconnect, How, Trigger, TriggerKind};
use rushhour::plan::fleet::{HubGroup, IssuerGroup, Reconnect, RiderGroup};
use rushhour::plan::payload::Payload;
use rushhour::plan::places::Choice;
use rushhour::plan::target::{Device, Find, Publishing, Target};
use rushhour::plan::template::{JsonTemplate, Template};
use rushhour::plan::{Operation, OperationKind, Plan};
use rushhour::retry::{Backoff, Retry};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub const CONNECT: OperationId = OperationId(0);
pub const JOURNEY: OperationId = OperationId(1);
pub const UNLOCK: OperationId = OperationId(2);
pub const ISSUE: OperationId = OperationId(3);
pub const COMMAND: OperationId = OperationId(4);
pub const START: OperationId = OperationId(5);

/// 0:00 in seconds of the clock: never 0, so that the two can't be mixed up.
pub const ZERO: u64 = 7;

/// A fleet of ten hubs, riders that unlock, one issuer; 60 s of load, no arrivals by plan (what is told is what there is).
pub fn plan() -> Plan {
    let retry = Retry {
        backoff: Backoff::Immediate,
        attempts: Some(1),
        ..Retry::NEVER
    };
    let operation = |name: &str, group: &str, kind| Operation {
        name: name.to_owned(),
        group: group.to_owned(),
        kind,
    };
    Plan {
        profile: PathBuf::from("profiles/evening.yaml"),
        about: "An evening.".to_owned(),
        series: None,
        seed: 42,
        duration: Duration::from_secs(60),
        baseline: Duration::from_secs(10),
        sustain: Duration::from_secs(5),
        settle: Duration::from_secs(30),
        drain: Duration::from_secs(5),
        target: Target {
            file: PathBuf::from("targets/lab.yaml"),
            devices: vec![device()],
            ..Target::default()
        },
        hubs: vec![homes(retry)],
        riders: vec![commuters(retry)],
        issuers: vec![app(retry)],
        docks: Vec::new(),
        triggers: Vec::new(),
        faults: Vec::new(),
        steady: Vec::new(),
        stop_if: Vec::new(),
        against: None,
        pause_while: Vec::new(),
        expect: Vec::new(),
        operations: vec![
            operation("connect", "homes", OperationKind::Connect { hubs: 0 }),
            operation("ride", "commuters", OperationKind::Journey { riders: 0 }),
            operation(
                "unlock",
                "commuters",
                OperationKind::Step { riders: 0, step: 0 },
            ),
            operation("app", "app", OperationKind::Issue { issuers: 0 }),
            operation("command", "app", OperationKind::Command { issuers: 0 }),
            operation(
                "start",
                "commuters",
                OperationKind::Step { riders: 0, step: 1 },
            ),
        ],
    }
}

fn homes(retry: Retry) -> HubGroup {
    HubGroup {
        name: "homes".to_owned(),
        device: 0,
        count: 10,
        connect_over: Duration::from_secs(1),
        keep_alive: Duration::from_secs(60),
        timeout: Duration::from_secs(5),
        telemetry: None,
        actuation: Duration::ZERO,
        reconnect: Reconnect {
            retry,
            first: Duration::ZERO,
            healthy_after: Duration::ZERO,
        },
        identity: None,
    }
}

fn commuters(retry: Retry) -> RiderGroup {
    RiderGroup {
        name: "commuters".to_owned(),
        journey: 0,
        arrivals: nobody(),
        timeout: Duration::from_secs(5),
        retry,
        max_in_flight: 100,
        identity: None,
        places: Choice::Even,
        idempotency: true,
    }
}

fn app(retry: Retry) -> IssuerGroup {
    IssuerGroup {
        name: "app".to_owned(),
        command: 0,
        to: 0,
        arrivals: nobody(),
        in_time: Duration::from_secs(2),
        ttl: Duration::from_secs(10),
        timeout: Duration::from_secs(5),
        retry,
        max_in_flight: 100,
        idempotency: true,
    }
}

fn nobody() -> Schedule {
    Schedule::new(Spread::Even, Vec::new())
}

fn device() -> Device {
    let text = |text: &str| Template::literal(text);
    Device {
        name: "hub".to_owned(),
        shards: vec![("one".to_owned(), text("mqtt://127.0.0.1:1883"))],
        find: Find::Balancer,
        client_id: text("hub"),
        username: None,
        password: None,
        telemetry: None,
        command: None,
        answer: Some(Publishing {
            topic: text("d/evt"),
            qos: 1,
            payload: Payload::Json(JsonTemplate::Map(Vec::new())),
            properties: Vec::new(),
        }),
        ..Device::default()
    }
}

/// A trigger at `at_s` seconds from 0:00.
pub fn drop_at(name: &str, at_s: u64) -> Trigger {
    Trigger {
        name: name.to_owned(),
        at: Duration::from_secs(at_s),
        lasts: Duration::ZERO,
        kind: TriggerKind::Disconnect(Disconnect {
            group: 0,
            share: 0.5,
            within: Duration::from_secs(2),
            by: How::Reset,
            away: Duration::ZERO,
            readmit: None,
        }),
    }
}

/// A line of `expect`.
pub fn line(
    subject: Subject,
    comparison: Comparison,
    value: f64,
    unit: Unit,
    scopes: Vec<Scope>,
) -> Expectation {
    Expectation {
        text: format!("{subject:?} {comparison:?} {value}"),
        place: "evening.yaml:9:5".to_owned(),
        each: false,
        subject,
        comparison,
        limit: Limit { value, unit },
        scopes,
    }
}

/// A run that a test tells by hand.
pub struct Stage {
    pub plan: Arc<Plan>,
    pub collector: Collector,
    pub shards: Vec<Arc<Shard>>,
    pub seconds: Vec<Second>,
}

impl Stage {
    pub fn new(plan: Plan) -> Stage {
        let plan = Arc::new(plan);
        let (collector, shards) = Collector::new(&plan, 2);
        let stage = Stage {
            plan,
            collector,
            shards,
            seconds: Vec::new(),
        };
        stage.tell(Event::Zero { at: at(0.0) });
        stage
    }

    pub fn tell(&self, event: Event) {
        self.shards[0].record(&event);
    }

    pub fn advance_to(&mut self, seconds: f64) {
        let closed = self.collector.advance(at(seconds));
        self.seconds.extend(closed);
    }

    /// Ends the run at `seconds` from 0:00.
    pub fn finish_at(&mut self, seconds: f64) {
        let closed = self.collector.finish(at(seconds));
        self.seconds.extend(closed);
    }

    /// An action that was due at `due_s`, started then, and took `took_s`.
    pub fn action(&self, operation: OperationId, due_s: f64, took_s: f64, outcome: Outcome) {
        let (due, end) = (at(due_s), at(due_s + took_s));
        self.tell(Event::Started {
            operation,
            due,
            at: due,
        });
        self.tell(Event::Attempted { operation, at: due });
        self.tell(Event::Answered {
            operation,
            sent: due,
            at: end,
            outcome,
        });
        self.tell(Event::Finished {
            operation,
            due,
            started: due,
            at: end,
            outcome,
            attempts: 1,
        });
    }

    pub fn mark(&self, id: u16, begin_s: f64, end_s: f64) {
        let mark = |phase, seconds| {
            Event::Mark(Mark {
                id: MarkId(id),
                phase,
                at: at(seconds),
            })
        };
        self.tell(mark(MarkPhase::Begin, begin_s));
        self.tell(mark(MarkPhase::End, end_s));
    }

    /// Changes of hubs; a connection that opens was attempted.
    pub fn hubs(&self, change: HubChange, count: u64, at_s: f64) {
        for hub in (0..).take(usize::try_from(count).unwrap_or(usize::MAX)) {
            if change == HubChange::Opened {
                self.tell(Event::Attempted {
                    operation: CONNECT,
                    at: at(at_s),
                });
            }
            self.tell(Event::Hub {
                group: 0,
                hub,
                change,
                at: at(at_s),
            });
        }
    }

    pub fn step(&self, number: u64, step: CommandStep, at_s: f64) {
        self.tell(Event::Command {
            id: CommandId { issuer: 0, number },
            step,
            at: at(at_s),
        });
    }

    /// A command that was due, handed over and answered after `took_s`.
    pub fn command(&self, number: u64, due_s: f64, took_s: f64) {
        self.step(number, CommandStep::Due, due_s);
        self.action(ISSUE, due_s, 0.01, Outcome::Ok);
        self.step(number, CommandStep::Sent, due_s);
        self.step(number, CommandStep::Accepted, due_s + 0.01);
        self.step(number, CommandStep::Delivered, due_s + took_s - 0.001);
        self.step(number, CommandStep::Acknowledged, due_s + took_s);
    }

    pub fn judge(&self) -> Judge<'_> {
        Judge::new(&self.collector, &[], &[])
    }

    /// The judgement of the first line.
    pub fn judged(&self) -> Judgement {
        self.judge().verdict().judgements.swap_remove(0)
    }
}

/// Seconds from 0:00 as an offset of the clock.
pub fn at(seconds: f64) -> Offset {
    Offset((ZERO as f64 * 1e6 + seconds * 1e6).round() as u64)
}
