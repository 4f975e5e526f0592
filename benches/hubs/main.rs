//! Idle hubs: memory and client CPU of ours against one rumqttc `EventLoop` per hub. `-- --tls [HUBS] [ROUNDS]`: what TLS costs, see
//! `tls.rs`.
//!
//! `cargo bench --bench hubs -- [HUBS] [ROUNDS]` (19 000 and 5). Each fleet runs in a fresh process against a mosquitto of its
//! own, the two in turn; printed are the medians. Both connect, subscribe and keep alive, with TCP_NODELAY, at most 90 connects
//! under way per listener, on the same runtime. Four loopback addresses are connected to, since rumqttc can't choose a source
//! address and connects get slow beyond half of the ports towards one. Ours includes its agent, its dice and its events, told
//! to a sink that counts.
#![expect(
    clippy::disallowed_methods,
    reason = "it starts brokers and processes, and measures by the clock"
)]

mod machine;
mod plan;
mod server;
mod tls;

use machine::{LIMIT, cpu_us, median, resident_bytes, run_again};
use plan::KEEP_ALIVE;
use rumqttc::{AsyncClient, EventLoop, Incoming, MqttOptions, QoS};
use rushhour::event::Sink;
use rushhour::live::hubs;
use rushhour::net::clock::Clock;
use rushhour::net::hosts::Hosts;
use rushhour::net::limits::Available;
use std::fmt::Write as _;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

const LISTENERS: usize = 4;
const CONNECTS_UNDER_WAY: usize = 90;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let number = |place: usize, default: usize| {
        arguments
            .get(place)
            .map_or(default, |text| text.parse().expect("a number"))
    };
    let rest = arguments.get(1..).unwrap_or_default();
    match arguments.first().map(String::as_str) {
        Some("--tls") => tls::compare(number(1, 5_000), number(2, 3)),
        Some("--tls-server") => server::serve(rest),
        Some("--tls-fleet") => tls::measure(rest),
        Some(fleet @ ("ours" | "rumqttc")) => measure(fleet, number(1, 0), number(2, 0)),
        _ => compare(number(0, 19_000), number(1, 5)),
    }
}

/// What one process measured.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Measured {
    bytes_per_hub: f64,
    cpu_us_per_connect: f64,
    seconds: f64,
}

fn compare(hubs: usize, rounds: usize) {
    let fleets = ["ours", "rumqttc"];
    let mut measured: [Vec<Measured>; 2] = [Vec::new(), Vec::new()];
    for round in 1..=rounds {
        for (fleet, results) in fleets.iter().zip(&mut measured) {
            let result = in_fresh_process(fleet, hubs);
            println!(
                "round {round} {fleet:>8}: {:>8.0} B a hub, {:>6.1} us CPU a connect, all stand after {:.2} s",
                result.bytes_per_hub, result.cpu_us_per_connect, result.seconds
            );
            results.push(result);
        }
    }
    let of = |fleet: usize, value: fn(&Measured) -> f64| {
        median(measured[fleet].iter().map(value).collect())
    };
    let memory = (
        of(0, |one| one.bytes_per_hub),
        of(1, |one| one.bytes_per_hub),
    );
    let cpu = (
        of(0, |one| one.cpu_us_per_connect),
        of(1, |one| one.cpu_us_per_connect),
    );
    println!("medians of {rounds} rounds with {hubs} hubs each, ours against rumqttc:");
    println!(
        "memory a hub:  {:>8.0} B against {:>8.0} B, 1/{:.1} (goal: at most 1/12)",
        memory.0,
        memory.1,
        memory.1 / memory.0
    );
    println!(
        "CPU a connect: {:>8.1} us against {:>6.1} us, {:.2} (goal: at most 0.85)",
        cpu.0,
        cpu.1,
        cpu.0 / cpu.1
    );
}

fn in_fresh_process(fleet: &str, hubs: usize) -> Measured {
    // A fresh broker on a fresh port: no TIME_WAIT of the round before is in the way.
    let mut broker = Broker::start();
    let numbers = run_again(&[fleet, &hubs.to_string(), &broker.port.to_string()], &[]);
    broker.stop();
    let [bytes_per_hub, cpu_us_per_connect, seconds] = numbers[..] else {
        panic!("{fleet} measured nothing: {numbers:?}");
    };
    Measured {
        bytes_per_hub,
        cpu_us_per_connect,
        seconds,
    }
}

/// A mosquitto on four loopback addresses.
struct Broker {
    port: u16,
    child: Child,
    _folder: tempfile::TempDir,
}

impl Broker {
    fn start() -> Broker {
        let probe = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = probe.local_addr().expect("its number").port();
        drop(probe);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut text =
            "per_listener_settings false\nallow_anonymous true\npersistence false\nlog_type none\n"
                .to_owned();
        for listener in 1..=LISTENERS {
            writeln!(
                text,
                "listener {port} 127.0.0.{listener}\nmax_connections -1"
            )
            .expect("text grows");
        }
        let file = folder.path().join("mosquitto.conf");
        std::fs::write(&file, text + "user root\n").expect("a file can be written");
        let child = Command::new("mosquitto")
            .arg("-c")
            .arg(file)
            .stderr(Stdio::null())
            .spawn()
            .expect("mosquitto is installed");
        while TcpStream::connect(("127.0.0.4", port)).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
        Broker {
            port,
            child,
            _folder: folder,
        }
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs one fleet in this process and prints what it took.
fn measure(fleet: &str, hubs: usize, port: usize) {
    let port = u16::try_from(port).expect("a port");
    Available::raise().expect("limits can be read");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (memory, cpu, began) = (resident_bytes(), cpu_us(), Instant::now());
        if fleet == "ours" {
            std::mem::forget(ours(hubs, port).await);
        } else {
            theirs(hubs, port).await;
        }
        let seconds = began.elapsed().as_secs_f64();
        let cpu = cpu_us() - cpu;
        // What the last connects freed has been given back by then, and nobody pings yet.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let memory = resident_bytes() - memory;
        println!("{} {} {seconds}", memory / hubs as f64, cpu / hubs as f64);
    });
    std::process::exit(0);
}

async fn ours(count: usize, port: u16) -> hubs::HubFleet {
    let shards = (1..=LISTENERS).map(|listener| format!("mqtt://127.0.0.{listener}:{port}"));
    let plan = Arc::new(plan::plan(count, shards));
    let told = Arc::new(AtomicU64::new(0));
    let sink: Sink = Arc::new(move |_| {
        told.fetch_add(1, Ordering::Relaxed);
    });
    let hosts = Arc::new(Hosts::of(&plan.target).expect("every shard has host and port"));
    let fleet = hubs::start(&plan, &hosts, Clock::start(), "bench", &[sink])
        .await
        .expect("every shard is permitted");
    assert!(fleet.all_stand(LIMIT).await, "{:?}", fleet.standing());
    fleet
}

async fn theirs(count: usize, port: u16) {
    let stand = Arc::new(AtomicUsize::new(0));
    let ramps: Vec<_> = (0..LISTENERS)
        .map(|_| Arc::new(Semaphore::new(CONNECTS_UNDER_WAY)))
        .collect();
    for index in 0..count {
        let (stand, ramp) = (Arc::clone(&stand), Arc::clone(&ramps[index % LISTENERS]));
        tokio::spawn(async move {
            let host = format!("127.0.0.{}", 1 + index % LISTENERS);
            let mut options = MqttOptions::new(format!("homes-{index:06}"), host, port);
            options.set_keep_alive(KEEP_ALIVE);
            let (client, mut events) = AsyncClient::new(options, 10);
            events.network_options.set_tcp_nodelay(true);
            events
                .network_options
                .set_connection_timeout(LIMIT.as_secs());
            let turn = ramp.acquire_owned().await.expect("nobody closes it");
            until(&mut events, |packet| matches!(packet, Incoming::ConnAck(_))).await;
            drop(turn);
            client
                .subscribe(format!("d/homes-{index:06}/cmd"), QoS::AtLeastOnce)
                .await
                .expect("room for one");
            until(&mut events, |packet| matches!(packet, Incoming::SubAck(_))).await;
            stand.fetch_add(1, Ordering::Relaxed);
            until(&mut events, |_| false).await;
        });
    }
    let end = Instant::now() + LIMIT;
    while stand.load(Ordering::Relaxed) < count {
        assert!(
            Instant::now() < end,
            "{} of {count}",
            stand.load(Ordering::Relaxed)
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn until(events: &mut EventLoop, wanted: impl Fn(&Incoming) -> bool) {
    loop {
        match events.poll().await {
            Ok(rumqttc::Event::Incoming(packet)) if wanted(&packet) => return,
            Ok(_) => {}
            Err(error) => panic!("rumqttc: {error}"),
        }
    }
}
