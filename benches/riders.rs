//! Riders: client CPU per request of ours on Goose against an open-loop reqwest driver that takes the same tickets.
//!
//! `cargo bench --bench riders -- [PER_SECOND] [SECONDS] [ROUNDS]` (1 500, 5 and 6). The server is a process of its own; each driver
//! runs in a fresh process, the two in turn; printed are the medians. Both send one GET per ticket at its due time over one shared
//! client of our own making, read the whole body, hold at most 256 requests in flight, and record the latency from the due time. Ours
//! includes its agent, its dice and its events, told to a sink that counts. The figures count only if both completed all requests.
#![expect(
    clippy::disallowed_methods,
    reason = "it starts processes and measures by the clock"
)]

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rushhour::arrivals::{Piece, Schedule, Spread};
use rushhour::event::{Event, Offset, Outcome, Sink};
use rushhour::live::tokens::Tokens;
use rushhour::live::users::UserFleet;
use rushhour::net::clock::Clock;
use rushhour::net::hosts::Hosts;
use rushhour::net::http::Http;
use rushhour::plan::places::Choice;
use rushhour::plan::target::{Answer, Journey, Method, Repeat, Request, Step, StepAction};
use rushhour::plan::{Plan, RiderGroup, Target, Template, operation};
use rushhour::retry::{Backoff, Retry};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const IN_FLIGHT: u32 = 256;
const TIMEOUT: Duration = Duration::from_secs(10);

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let number = |place: usize, default: u32| {
        arguments
            .get(place)
            .map_or(default, |text| text.parse().expect("a number"))
    };
    match arguments.first().map(String::as_str) {
        Some("server") => serve(),
        Some(driver @ ("riders" | "reqwest")) => {
            measure(driver, &arguments[1], number(2, 0), number(3, 0))
        }
        _ => compare(number(0, 1_500), number(1, 5), number(2, 6)),
    }
}

/// What one process measured.
#[derive(Debug, Clone, Copy)]
struct Measured {
    cpu_us_per_request: f64,
    requests: u64,
    mean_latency_us: f64,
}

fn compare(per_second: u32, seconds: u32, rounds: u32) {
    let mut server = start(&["server"]);
    let mut address = String::new();
    BufReader::new(server.stdout.take().expect("its output is piped"))
        .read_line(&mut address)
        .expect("the server tells its address");
    let drivers = ["riders", "reqwest"];
    let mut measured: [Vec<Measured>; 2] = [Vec::new(), Vec::new()];
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        for (driver, results) in drivers.iter().zip(&mut measured) {
            let result = in_fresh_process(driver, address.trim(), per_second, seconds);
            println!(
                "round {round} {driver:>8}: {:>6.1} us CPU a request, {} requests, mean latency from due {:.0} us",
                result.cpu_us_per_request, result.requests, result.mean_latency_us
            );
            results.push(result);
        }
        let last = |driver: usize| measured[driver][measured[driver].len() - 1].cpu_us_per_request;
        ratios.push(last(0) / last(1));
    }
    let of = |driver: usize| {
        median(
            measured[driver]
                .iter()
                .map(|one| one.cpu_us_per_request)
                .collect(),
        )
    };
    println!(
        "{per_second} requests/s, {rounds} rounds of {seconds} s, medians: riders {:.1} us, reqwest {:.1} us; ratio of the medians {:.2}, median of the rounds' ratios {:.2}",
        of(0),
        of(1),
        of(0) / of(1),
        median(ratios)
    );
    // It ends when its input does.
    drop(server.stdin.take());
    server.wait().expect("the server ends");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

fn start(arguments: &[&str]) -> Child {
    Command::new(std::env::current_exe().expect("the path of this program"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program can be started again")
}

fn in_fresh_process(driver: &str, address: &str, per_second: u32, seconds: u32) -> Measured {
    let child = start(&[
        driver,
        address,
        &per_second.to_string(),
        &seconds.to_string(),
    ]);
    let output = child.wait_with_output().expect("the driver ends");
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let [cpu_us_per_request, requests, mean_latency_us] = numbers[..] else {
        panic!("{driver} said `{text}`");
    };
    Measured {
        cpu_us_per_request,
        requests: requests as u64,
        mean_latency_us,
    }
}

/// Answers every GET with the same short text, until its input ends.
fn serve() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime can be built");
    runtime.spawn(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a free port");
        println!("{}", listener.local_addr().expect("it is bound"));
        let near = axum::routing::get(|| async { r#"{"bikes":[{"id":"b-1"}]}"# });
        axum::serve(listener, axum::Router::new().route("/near", near)).await
    });
    let _ = std::io::stdin().read(&mut [0]);
}

fn cpu_us() -> i64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("a process may ask about itself");
    usage.user_time().num_microseconds() + usage.system_time().num_microseconds()
}

/// Counts answered requests and their latencies.
#[derive(Default)]
struct Tally {
    answered: AtomicU64,
    latency_us: AtomicU64,
}

impl Tally {
    fn record(&self, due: Offset, at: Offset) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        let latency_us = u64::try_from(at.since(due).as_micros()).unwrap_or(u64::MAX);
        self.latency_us.fetch_add(latency_us, Ordering::Relaxed);
    }
}

fn measure(driver: &str, address: &str, per_second: u32, seconds: u32) {
    let plan = Arc::new(plan(
        address,
        f64::from(per_second),
        Duration::from_secs(seconds.into()),
    ));
    let hosts = Arc::new(Hosts::of(&plan.target).expect("the address can be read"));
    let tally = Arc::new(Tally::default());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be built");
    let cpu_us = match driver {
        "riders" => runtime.block_on(on_goose(&plan, &hosts, &tally)),
        _ => runtime.block_on(on_reqwest(&plan, &hosts, &tally)),
    };
    let requests = tally.answered.load(Ordering::Relaxed);
    println!(
        "{} {requests} {}",
        cpu_us as f64 / requests as f64,
        tally.latency_us.load(Ordering::Relaxed) as f64 / requests as f64
    );
}

/// Our riders; the CPU time from `0:00` to the end of the load.
async fn on_goose(plan: &Arc<Plan>, hosts: &Arc<Hosts>, tally: &Arc<Tally>) -> i64 {
    let recorded = Arc::clone(tally);
    let journey = plan
        .operations
        .iter()
        .position(|row| row.name == "ride")
        .expect("it has a row");
    let sink: Sink = Arc::new(move |event| {
        if let Event::Finished {
            operation,
            due,
            at,
            outcome: Outcome::Ok,
            ..
        } = event
            && usize::from(operation.0) == journey
        {
            recorded.record(due, at);
        }
    });
    let clock = Clock::start();
    let fleet = UserFleet::start(
        plan,
        hosts,
        clock,
        "bench",
        &[sink],
        &rushhour::live::docks::Inboxes::default(),
        &Tokens::default(),
    )
    .await
    .expect("the riders start");
    let before_us = cpu_us();
    let zero = clock.now();
    fleet.begin(zero);
    tokio::time::sleep_until(clock.instant(zero.after(plan.duration))).await;
    let used_us = cpu_us() - before_us;
    fleet.stop(clock.now().after(TIMEOUT)).await;
    used_us
}

/// The plainest open loop: one task tells who is due, as many tasks as may be in flight send.
async fn on_reqwest(plan: &Arc<Plan>, hosts: &Arc<Hosts>, tally: &Arc<Tally>) -> i64 {
    let (sender, tickets) = flume::unbounded::<Offset>();
    let http = Http::new(Arc::clone(hosts), IN_FLIGHT as usize, TIMEOUT).expect("a client");
    let StepAction::Request(request) = &plan.target.journeys[0].steps[0].action else {
        panic!("the journey has one request");
    };
    let address = request.url.to_string();
    let clock = Clock::start();
    for _ in 0..IN_FLIGHT {
        let (tickets, client, address) = (tickets.clone(), http.client().clone(), address.clone());
        let tally = Arc::clone(tally);
        tokio::spawn(async move {
            while let Ok(due) = tickets.recv_async().await {
                let sent = client.get(&address).timeout(TIMEOUT).send().await;
                if let Ok(response) = sent
                    && response.bytes().await.is_ok()
                {
                    tally.record(due, clock.now());
                }
            }
        });
    }
    let before_us = cpu_us();
    let zero = clock.now();
    let schedule = &plan.riders[0].arrivals;
    let mut next = 1;
    while let Some(due) = schedule.due(next) {
        let due = zero.after(due);
        tokio::time::sleep_until(clock.instant(due)).await;
        let _ = sender.send(due);
        next += 1;
    }
    tokio::time::sleep_until(clock.instant(zero.after(plan.duration))).await;
    let used_us = cpu_us() - before_us;
    // What is still in flight counts as a request, like that of the riders.
    tokio::time::sleep(Duration::from_millis(500)).await;
    used_us
}

fn plan(address: &str, per_second: f64, lasts: Duration) -> Plan {
    let request = Request {
        method: Method::Get,
        url: Template::literal(&format!("http://{address}/near")),
        headers: Vec::new(),
        bearer: None,
        json: None,
        answer: Answer::default(),
    };
    let steps = vec![Step {
        name: "near".to_owned(),
        action: StepAction::Request(request),
        repeat: Repeat::Once,
    }];
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
        timeout: TIMEOUT,
        retry: Retry {
            backoff: Backoff::Immediate,
            attempts: Some(1),
            ..Retry::NEVER
        },
        max_in_flight: IN_FLIGHT,
        identity: None,
        places: Choice::Even,
        idempotency: true,
    }];
    Plan {
        profile: PathBuf::new(),
        about: String::new(),
        series: None,
        seed: 1,
        duration: lasts,
        baseline: Duration::ZERO,
        sustain: Duration::ZERO,
        settle: Duration::ZERO,
        drain: Duration::ZERO,
        operations: operation::table(&[], &riders, &[], &target),
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
    }
}
