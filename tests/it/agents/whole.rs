//! A plan whose riders do everything that a journey may ask of them.

use super::plans::{plan, seconds};
use rushhour::plan::json_path::JsonPath;
use rushhour::plan::places::Places;
use rushhour::plan::target::{
    Answer, Candidates, Closing, Journey, Method, Poll, Repeat, Request, Span, Step, StepAction,
};
use rushhour::plan::{Plan, Template, operation};

pub const UNLOCK: usize = 1;
pub const STARTED: usize = 2;
const RETURN: usize = 4;

fn request(method: Method, path: &str, answer: Answer) -> StepAction {
    StepAction::Request(Request {
        method,
        url: template(&format!("http://127.0.0.1:80{path}")),
        headers: vec![("Idempotency-Key".to_owned(), template("<intent>"))],
        bearer: None,
        json: None,
        answer,
    })
}

fn template(text: &str) -> Template {
    Template::parse(text).expect("a template")
}

fn keep(name: &str, path: &str) -> Vec<(String, JsonPath)> {
    vec![(name.to_owned(), JsonPath::parse(path).expect("a path"))]
}

/// What near and unlock make of their answers.
fn answers() -> (Answer, Answer) {
    let near = Answer {
        keep: keep("bikes", "$.bikes[*].id"),
        or_end: Some("no-bike".to_owned()),
        ..Answer::default()
    };
    let unlock = Answer {
        declined: [(409, "taken".to_owned())].into(),
        keep: keep("trip", "$.trip_id"),
        ..Answer::default()
    };
    (near, unlock)
}

/// near, unlock (three candidates), started (polled for 10 s), ride, return; give-back unless return went well; the span start.
pub fn journey() -> Journey {
    let step = |name: &str, action, repeat| Step {
        name: name.to_owned(),
        action,
        repeat,
    };
    let (near, unlock) = answers();
    let candidates = Candidates {
        list: "bikes".to_owned(),
        each: "bike".to_owned(),
        up_to: 3,
    };
    let poll = Poll {
        every: seconds(1),
        until: vec![(
            JsonPath::parse("$.state").expect("a path"),
            vec!["started".to_owned()],
        )],
        give_up: seconds(10),
    };
    let think = StepAction::Think {
        low: seconds(60),
        high: seconds(90),
    };
    let back = request(Method::Post, "/trips/<trip>/back", Answer::default());
    let StepAction::Request(back) = back else {
        panic!("it is a request");
    };
    let at = |path: &str, answer| request(Method::Post, path, answer);
    Journey {
        name: "whole".to_owned(),
        place: Some(0),
        steps: vec![
            step("near", at("/stations/<station>", near), Repeat::Once),
            step(
                "unlock",
                at("/bikes/<bike>/unlock", unlock),
                Repeat::ForEach(candidates),
            ),
            step(
                "started",
                request(Method::Get, "/trips/<trip>", Answer::default()),
                Repeat::Until(poll),
            ),
            step("ride", think, Repeat::Once),
            step(
                "return",
                at("/trips/<trip>/end", Answer::default()),
                Repeat::Once,
            ),
        ],
        always: vec![Closing {
            name: "give-back".to_owned(),
            request: back,
            unless: Some(RETURN),
        }],
        spans: vec![Span {
            name: "start".to_owned(),
            from: UNLOCK,
            to: STARTED,
        }],
        ..Journey::default()
    }
}

/// The plan of the other tests with this journey.
pub fn whole_plan() -> Plan {
    let mut plan = plan(1);
    plan.target.places = vec![Places {
        name: "stations".to_owned(),
        names: (1..=10).map(|n| format!("st-{n}")).collect(),
    }];
    plan.target.journeys = vec![journey()];
    plan.operations = operation::table(&plan.hubs, &plan.riders, &plan.issuers, &plan.target);
    plan
}
