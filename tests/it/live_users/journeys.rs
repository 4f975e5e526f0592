//! Whole journeys against a server that keeps a log: what it counts is what is told, and no trip stays open.

use super::stage::{Told, begin};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use rushhour::event::{Event, OperationId, Outcome};
use rushhour::plan::Plan;
use rushhour::spec::{Sources, read};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A small bike company: the first bike of every station is taken, a lock opens at the third look.
#[derive(Default)]
struct Company {
    /// Requests by what they ask.
    asked: BTreeMap<&'static str, usize>,
    stations: BTreeMap<String, usize>,
    /// Looks at each trip that has not ended.
    open: BTreeMap<String, usize>,
    trips: usize,
    /// Trips begun with an idempotency key, by it.
    keys: BTreeMap<String, String>,
    /// Unlocks are answered after the client has lost its patience, the first of each bike at least.
    slow: bool,
    seen: BTreeMap<String, usize>,
}

type Shared = Arc<Mutex<Company>>;

impl Company {
    fn count(&mut self, what: &'static str) {
        *self.asked.entry(what).or_default() += 1;
    }

    fn asked(&self, what: &str) -> usize {
        self.asked.get(what).copied().unwrap_or(0)
    }
}

async fn station(State(company): State<Shared>, Path(name): Path<String>) -> Json<Value> {
    let mut company = company.lock().unwrap();
    company.count("near");
    let turn = company.asked("near");
    *company.stations.entry(name).or_default() += 1;
    let bike = |place: &str| json!({ "id": format!("{place}-{turn}") });
    Json(json!({ "bikes": [bike("taken"), bike("free"), bike("spare")] }))
}

async fn unlock(
    State(company): State<Shared>,
    Path(bike): Path<String>,
    headers: axum::http::HeaderMap,
) -> (StatusCode, Json<Value>) {
    let (trip, slow) = {
        let mut company = company.lock().unwrap();
        company.count("unlock");
        if bike.starts_with("taken") {
            return (StatusCode::CONFLICT, Json(json!({})));
        }
        let seen = company.seen.entry(bike).or_default();
        *seen += 1;
        let slow = *seen == 1 && company.slow;
        let key = headers.get("idempotency-key");
        let key = key.map(|key| key.to_str().unwrap().to_owned());
        let known = key.as_ref().and_then(|key| company.keys.get(key)).cloned();
        let trip = known.unwrap_or_else(|| {
            company.trips += 1;
            let trip = format!("trip-{}", company.trips);
            company.open.insert(trip.clone(), 0);
            trip
        });
        if let Some(key) = key {
            company.keys.insert(key, trip.clone());
        }
        (trip, slow)
    };
    if slow {
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    (StatusCode::ACCEPTED, Json(json!({ "trip_id": trip })))
}

async fn trip(State(company): State<Shared>, Path(trip): Path<String>) -> Json<Value> {
    let mut company = company.lock().unwrap();
    company.count("poll");
    let looks = company.open.get_mut(&trip).unwrap();
    *looks += 1;
    let state = if *looks < 3 { "starting" } else { "started" };
    Json(json!({ "state": state }))
}

async fn end(State(company): State<Shared>, Path((trip, how)): Path<(String, String)>) {
    let mut company = company.lock().unwrap();
    company.count(if how == "end" { "end" } else { "back" });
    company.open.remove(&trip);
}

async fn company() -> (Shared, SocketAddr) {
    let company = Shared::default();
    let router = Router::new()
        .route("/stations/{name}", get(station))
        .route("/bikes/{id}/unlock", post(unlock))
        .route("/trips/{id}", get(trip))
        .route("/trips/{id}/{how}", post(end))
        .with_state(Arc::clone(&company));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (company, address)
}

/// The plan of files as a user writes them; `think` and `more` are of the riders' journey and group.
fn plan(address: SocketAddr, think: &str, more: &str) -> Plan {
    let directory = tempfile::tempdir().unwrap();
    let target = format!(
        r#"
environment: test
places: {{ stations: {{ count: 8, name: "st-<n>" }} }}
journeys:
  whole:
    place: stations
    base: http://{address}
    steps:
      near: {{ get: /stations/<station>, keep: {{ bikes: "$.bikes[*].id" }}, or_end: no-bike }}
      unlock:
        for_each: bikes as bike
        up_to: 3
        post: /bikes/<bike>/unlock
        headers: {{ Idempotency-Key: <intent> }}
        ok: 202
        declined: {{ 409: taken }}
        keep: {{ trip: $.trip_id }}
      started: {{ get: /trips/<trip>, every: 50ms, until: {{ $.state: started }}, give_up: 20s }}
      ride: {{ think: {think} }}
      return: {{ post: /trips/<trip>/end }}
    always: {{ give-back: {{ post: /trips/<trip>/back, unless: return }} }}
    spans: {{ start: unlock to started }}
"#
    );
    let profile = format!(
        r#"
target: target.yaml
duration: 1s
drain: 20s
riders:
  people:
    journey: whole
    arrivals: {{ even: [ 40/s for 1s ] }}
    places: {{ zipf: 1.1 }}
    {more}
"#
    );
    std::fs::write(directory.path().join("target.yaml"), target).unwrap();
    std::fs::write(directory.path().join("profile.yaml"), profile).unwrap();
    let sources = Sources {
        profile: directory.path().join("profile.yaml"),
        ..Sources::default()
    };
    read(&sources).unwrap_or_else(|problems| panic!("{problems}"))
}

/// What was told of the operation of this name.
struct Counts<'a> {
    told: &'a Told,
    plan: &'a Plan,
}

impl Counts<'_> {
    fn of(&self, name: &str, is: impl Fn(&Event) -> bool) -> usize {
        let rows = self.plan.operations.iter();
        let row = rows.clone().position(|row| row.name == name).unwrap();
        let row = OperationId(u16::try_from(row).unwrap());
        let events = self.told.events();
        let here = events.iter().filter(|event| match event {
            Event::Attempted { operation, .. }
            | Event::Continued { operation, .. }
            | Event::Duplicated { operation, .. }
            | Event::Unfinished { operation, .. }
            | Event::Finished { operation, .. } => *operation == row,
            _ => false,
        });
        here.filter(|event| is(event)).count()
    }

    fn attempted(&self, name: &str) -> usize {
        self.of(name, |event| matches!(event, Event::Attempted { .. }))
    }

    fn continued(&self, name: &str) -> usize {
        self.of(name, |event| matches!(event, Event::Continued { .. }))
    }

    fn finished(&self, name: &str, with: Outcome) -> usize {
        self.of(
            name,
            |event| matches!(event, Event::Finished { outcome, .. } if *outcome == with),
        )
    }

    fn unfinished(&self, name: &str) -> usize {
        self.of(name, |event| matches!(event, Event::Unfinished { .. }))
    }

    fn duplicated(&self, name: &str) -> usize {
        self.of(name, |event| matches!(event, Event::Duplicated { .. }))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_counts_what_is_told_of_whole_journeys() {
    let (company, address) = company().await;
    let told = Told::default();
    let plan = plan(address, "10ms to 50ms", "timeout: 10s");
    super::stage::run(plan.clone(), &told).await;

    let counts = Counts {
        told: &told,
        plan: &plan,
    };
    let company = company.lock().unwrap();
    assert_eq!(counts.finished("whole", Outcome::Ok), 40);
    assert_eq!(counts.finished("start", Outcome::Ok), 40);
    assert_eq!((company.asked("near"), counts.attempted("near")), (40, 40));
    // The first bike is always taken: the second is no retry.
    assert_eq!(company.asked("unlock"), 80);
    assert_eq!(
        (counts.attempted("unlock"), counts.continued("unlock")),
        (40, 40)
    );
    // Three looks at each trip, of which the first two see it starting.
    assert_eq!(company.asked("poll"), 120);
    assert_eq!(
        (counts.attempted("started"), counts.continued("started")),
        (40, 80)
    );
    assert_eq!((company.asked("end"), company.asked("back")), (40, 0));
    assert!(company.open.is_empty());
    // Zipf: the first of eight stations gets the most, about 15 of 40.
    assert!(company.stations["st-1"] >= 6, "{:?}", company.stations);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_run_ends_early_every_open_trip_is_given_back() {
    let (company, address) = company().await;
    let told = Told::default();
    let plan = plan(address, "10m", "timeout: 5s");
    let shared = Arc::new(plan.clone());
    let (fleet, clock, _) = begin(&shared, &told).await;
    let riding = tokio::time::timeout(Duration::from_secs(30), async {
        while company
            .lock()
            .unwrap()
            .open
            .values()
            .filter(|looks| **looks >= 3)
            .count()
            < 40
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    riding.await.expect("all 40 ride");
    // As at Ctrl-C: the drain is not waited for, since nobody could be back by then.
    let asked = clock.now();
    fleet.stop(asked.after(Duration::from_secs(20))).await;
    assert!(clock.now().since(asked) < Duration::from_secs(15));
    let counts = Counts {
        told: &told,
        plan: &plan,
    };
    let company = company.lock().unwrap();
    assert!(company.open.is_empty(), "{:?}", company.open);
    assert_eq!(company.asked("back"), 40);
    assert_eq!(counts.finished("give-back", Outcome::Ok), 40);
    assert_eq!(counts.unfinished("whole"), 40);
    assert_eq!(counts.finished("start", Outcome::Ok), 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_unlock_is_another_trip_only_without_its_key() {
    for (more, trips) in [("", 40), ("\n    idempotency: off", 80)] {
        let (company, address) = company().await;
        company.lock().unwrap().slow = true;
        let told = Told::default();
        let more = format!("timeout: 1s\n    retry: {{ immediate: {{ attempts: 3 }} }}{more}");
        let plan = plan(address, "10ms", &more);
        super::stage::run(plan.clone(), &told).await;
        let counts = Counts {
            told: &told,
            plan: &plan,
        };
        let company = company.lock().unwrap();
        assert_eq!(company.trips, trips);
        // Each trip of which no rider knows stays open.
        assert_eq!(company.open.len(), trips - 40);
        assert_eq!(counts.duplicated("unlock"), trips - 40);
        let asked = company.asked("unlock");
        assert_eq!(
            asked,
            counts.attempted("unlock") + counts.continued("unlock")
        );
        assert_eq!(counts.finished("whole", Outcome::Ok), 40);
    }
}
