//! Small plans, written down in code.

use rushhour::arrivals::{Piece, Schedule, Spread};
use rushhour::plan::fault::{Disconnect, How, Trigger, TriggerKind};
use rushhour::plan::fleet::{Reconnect, Telemetry};
use rushhour::plan::json_path::JsonPath;
use rushhour::plan::payload::Payload;
use rushhour::plan::places::Choice;
use rushhour::plan::target::{
    Answer, CommandSend, CommandSpec, CommandTopic, Device, Find, IdOwner, IdPlace, Journey,
    Method, Publishing, Repeat, Request, Step, StepAction, Topic,
};
use rushhour::plan::template::JsonTemplate;
use rushhour::plan::{HubGroup, IssuerGroup, Plan, RiderGroup, Target, Template, operation};
use rushhour::retry::{Backoff, Retry};
use std::path::PathBuf;
use std::time::Duration;

pub const TAG: &str = "t1";

pub fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn text(text: &str) -> Template {
    Template::parse(text).expect("a template")
}

fn path(text: &str) -> JsonPath {
    JsonPath::parse(text).expect("a path")
}

/// One group of hubs, one of riders and one of issuers, for a minute.
pub fn plan(hubs: u32) -> Plan {
    let target = Target {
        devices: vec![device()],
        commands: vec![command()],
        journeys: vec![journey()],
        ..Target::default()
    };
    let mut plan = Plan {
        profile: PathBuf::from("in-code.yaml"),
        about: String::new(),
        series: None,
        seed: 42,
        duration: seconds(60),
        baseline: seconds(10),
        sustain: seconds(10),
        settle: seconds(60),
        drain: seconds(10),
        target,
        hubs: vec![homes(hubs)],
        riders: vec![commuters()],
        issuers: vec![app()],
        docks: Vec::new(),
        triggers: Vec::new(),
        faults: Vec::new(),
        steady: Vec::new(),
        stop_if: Vec::new(),
        against: None,
        pause_while: Vec::new(),
        expect: Vec::new(),
        operations: Vec::new(),
    };
    plan.operations = operation::table(&plan.hubs, &plan.riders, &plan.issuers, &plan.target);
    plan
}

/// The plan with a share of its hubs dropped at once.
pub fn with_drop(mut plan: Plan, at: Duration, share: f64, away: Duration) -> Plan {
    plan.triggers.push(Trigger {
        name: "drop".to_owned(),
        at,
        lasts: Duration::ZERO,
        kind: TriggerKind::Disconnect(Disconnect {
            group: 0,
            share,
            within: Duration::ZERO,
            by: How::Reset,
            away,
            readmit: None,
        }),
    });
    plan
}

pub fn even(per_second: f64, lasts: Duration) -> Schedule {
    let piece = Piece {
        from_per_second: per_second,
        to_per_second: per_second,
        lasts,
    };
    Schedule::new(Spread::Even, vec![piece])
}

pub fn full_jitter(base: Duration, cap: Duration) -> Retry {
    Retry {
        backoff: Backoff::FullJitter {
            base,
            cap,
            factor: 2.0,
        },
        attempts: None,
        ..Retry::NEVER
    }
}

pub fn doubling(base: Duration, cap: Duration) -> Retry {
    Retry {
        backoff: Backoff::Exponential {
            base,
            cap,
            factor: 2.0,
        },
        attempts: None,
        ..Retry::NEVER
    }
}

pub fn fixed(every: Duration, attempts: u32) -> Retry {
    Retry {
        backoff: Backoff::Fixed { every },
        attempts: Some(attempts),
        ..Retry::NEVER
    }
}

fn homes(count: u32) -> HubGroup {
    HubGroup {
        name: "homes".to_owned(),
        device: 0,
        count,
        connect_over: seconds(10),
        keep_alive: seconds(30),
        timeout: seconds(5),
        telemetry: Some(Telemetry {
            every: seconds(20),
            bytes: 40,
        }),
        actuation: millis(150),
        reconnect: Reconnect {
            retry: full_jitter(seconds(1), seconds(15)),
            first: seconds(5),
            healthy_after: seconds(10),
        },
        identity: None,
    }
}

fn device() -> Device {
    Device {
        name: "hub".to_owned(),
        shards: vec![("one".to_owned(), text("mqtt://127.0.0.1:1883"))],
        find: Find::Balancer,
        client_id: text("<serial>"),
        username: None,
        password: None,
        telemetry: Some(Topic {
            topic: text("d/<serial>/state"),
            qos: 0,
        }),
        command: Some(CommandTopic {
            topic: text("d/<serial>/cmd"),
            qos: 1,
            id: IdPlace::Json(path("$.id")),
        }),
        answer: Some(Publishing {
            topic: text("d/<serial>/evt"),
            qos: 1,
            payload: Payload::Json(JsonTemplate::Map(vec![(
                "id".to_owned(),
                JsonTemplate::Text(text("<command>")),
            )])),
            properties: Vec::new(),
        }),
        ..Device::default()
    }
}

fn command() -> CommandSpec {
    let request = request(
        Method::Post,
        "http://127.0.0.1:80/v1/hubs/<serial>/commands",
        "<command>",
        Answer {
            ok: vec![202],
            expired: vec![410],
            declined: [(409, "busy".to_owned())].into(),
            ..Answer::default()
        },
    );
    CommandSpec {
        name: "switch".to_owned(),
        to: 0,
        send: CommandSend::Http(request),
        tls: None,
        id: IdOwner::Ours,
    }
}

fn request(method: Method, url: &str, key: &str, answer: Answer) -> Request {
    Request {
        method,
        url: text(url),
        headers: vec![("Idempotency-Key".to_owned(), text(key))],
        bearer: None,
        json: None,
        answer,
    }
}

/// near (keeps a bike, or ends), unlock (may be taken), a ride, and the return.
fn journey() -> Journey {
    let keep = |name: &str, path: &str| vec![(name.to_owned(), self::path(path))];
    let step = |name: &str, action| Step {
        name: name.to_owned(),
        action,
        repeat: Repeat::Once,
    };
    let near = Answer {
        keep: keep("bike", "$.bikes[0].id"),
        or_end: Some("no-bike".to_owned()),
        ..Answer::default()
    };
    let unlock = Answer {
        ok: vec![202],
        declined: [(409, "taken".to_owned())].into(),
        keep: keep("trip", "$.trip_id"),
        ..Answer::default()
    };
    let base = "http://127.0.0.1:80/v1";
    Journey {
        name: "unlock-and-ride".to_owned(),
        place: None,
        always: Vec::new(),
        spans: Vec::new(),
        steps: vec![
            step(
                "near",
                StepAction::Request(request(
                    Method::Get,
                    &format!("{base}/near?rider=<rider>"),
                    "<intent>",
                    near,
                )),
            ),
            step(
                "unlock",
                StepAction::Request(request(
                    Method::Post,
                    &format!("{base}/bikes/<bike>/unlock"),
                    "<intent>",
                    unlock,
                )),
            ),
            step(
                "ride",
                StepAction::Think {
                    low: seconds(3),
                    high: seconds(9),
                },
            ),
            step(
                "return",
                StepAction::Request(request(
                    Method::Post,
                    &format!("{base}/trips/<trip>/end"),
                    "<intent>",
                    Answer::default(),
                )),
            ),
        ],
        ..Journey::default()
    }
}

fn commuters() -> RiderGroup {
    RiderGroup {
        name: "commuters".to_owned(),
        journey: 0,
        arrivals: even(5.0, seconds(60)),
        timeout: seconds(5),
        retry: fixed(seconds(2), 4),
        max_in_flight: 1000,
        identity: None,
        places: Choice::Even,
        idempotency: true,
    }
}

fn app() -> IssuerGroup {
    IssuerGroup {
        name: "app".to_owned(),
        command: 0,
        to: 0,
        arrivals: even(4.0, seconds(60)),
        in_time: seconds(2),
        ttl: seconds(30),
        timeout: seconds(5),
        retry: fixed(seconds(2), 4),
        max_in_flight: 1000,
        idempotency: true,
    }
}
