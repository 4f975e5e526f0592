//! A real pool under more clients than it has connections: what is reported against what the clients measured themselves.

use super::running::Running;
use crate::support::pgbouncer::{PgBouncer, pgbouncer};
use crate::support::postgres::postgres;
use rushhour::event::Offset;
use rushhour::measure::pool::PoolSeries;
use rushhour::plan::Template;
use rushhour::plan::probe::{Origin, Plays, ProbeSource, Signals};
use rushhour::plan::signal::Signal;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

const EVERY: Duration = Duration::from_millis(200);
const TIMEOUT: Duration = Duration::from_millis(190);
/// Connections of each pool.
const POOL: u32 = 5;
/// Clients reach their steady state, then are measured for so long.
const RAMP: Duration = Duration::from_millis(2000);
const MEASURED: Duration = Duration::from_secs(5);
/// Clients come one after the other over this time: a wave that ends in the window but began before it would weigh too much.
const ARRIVE: Duration = Duration::from_millis(1300);

/// One wait of a client: when it ended, how long it was, and whether a connection came of it.
#[derive(Debug, Clone, Copy)]
struct Wait {
    ended: Offset,
    seconds: f64,
    served: bool,
}

fn source(name: &str, preset: &str, origin: Origin) -> ProbeSource {
    ProbeSource {
        name: name.to_owned(),
        plays: Plays::Pool,
        origin,
        labels: Vec::new(),
        signals: Signals::Preset(preset.to_owned()),
    }
}

fn console(name: &str, bouncer: &PgBouncer) -> ProbeSource {
    let at = Template::literal(&bouncer.console());
    source(name, "pgbouncer", Origin::Console(at))
}

async fn connected(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    client
}

fn unix_seconds() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs_f64()
}

/// How long the client of this number holds its n-th connection: around `mean`, a third more or less, so that clients do not fall
/// into step.
fn hold(mean: Duration, number: u32, nth: u32) -> Duration {
    let drawn = (number * 7919 + nth * 104_729) % 1000;
    mean.mul_f64(2.0 / 3.0 + f64::from(drawn) / 1500.0)
}

/// Asks again and again for a connection and holds it. A query begins at the server once it has one: until then it waited.
async fn client(
    url: String,
    (mean, number): (Duration, u32),
    running: Arc<Running>,
    waits: Arc<Mutex<Vec<Wait>>>,
) {
    let mut client = connected(&url).await;
    for nth in 0.. {
        let hold = hold(mean, number, nth);
        let query = format!(
            "select extract(epoch from statement_timestamp()), pg_sleep({})",
            hold.as_secs_f64()
        );
        let sent = unix_seconds();
        let said = client.simple_query(&query).await;
        let wait = match said {
            Ok(messages) => {
                let began = messages.iter().find_map(|message| match message {
                    SimpleQueryMessage::Row(row) => row.get(0)?.parse::<f64>().ok(),
                    _ => None,
                });
                Wait {
                    ended: Offset(running.clock.now().0 - hold.as_micros() as u64),
                    seconds: began.unwrap() - sent,
                    served: true,
                }
            }
            // It waited in vain, and its connection is gone.
            Err(_) => {
                let waited = Wait {
                    ended: running.clock.now(),
                    seconds: unix_seconds() - sent,
                    served: false,
                };
                client = connected(&url).await;
                waited
            }
        };
        waits.lock().unwrap().push(wait);
    }
}

/// The mean of all waits that ended in the window, in microseconds, and the share of those in vain.
fn measured(waits: &Mutex<Vec<Wait>>, window: &Range<Offset>) -> (f64, f64) {
    let waits = waits.lock().unwrap();
    let ended = || waits.iter().filter(|wait| window.contains(&wait.ended));
    let count = ended().count() as f64;
    let in_vain = ended().filter(|wait| !wait.served).count() as f64;
    let seconds: f64 = ended().map(|wait| wait.seconds).sum();
    (seconds / count * 1e6, in_vain / count)
}

fn within_5_percent(series: &PoolSeries, waits: &Mutex<Vec<Wait>>, window: &Range<Offset>) {
    let reported = series.wait_mean(window.clone()).unwrap();
    let (measured_us, in_vain) = measured(waits, window);
    assert!(
        measured_us >= 300_000.0,
        "the rig waits for {measured_us} us only"
    );
    let off = (reported.judged_us - measured_us).abs() / measured_us;
    assert!(
        off <= 0.05,
        "{reported:?} against {measured_us} us measured by clients ({in_vain} in vain)"
    );
}

/// Rush of clients at two poolers of one database, measured at the same time; then everything at the first one comes to a halt.
#[test]
fn the_reported_wait_is_that_of_the_clients_and_a_stall_is_seen_at_once() {
    let Some(database) = postgres() else { return };
    let size = format!("default_pool_size = {POOL}\n");
    let Some(patient) = pgbouncer(&database, &size) else {
        return;
    };
    let Some(strict) = pgbouncer(&database, &format!("{size}query_wait_timeout = 1\n")) else {
        return;
    };
    let at = Template::literal(&database.url());
    let origin = Origin::Sql { at, query: None };
    let running = Arc::new(Running::of(
        vec![
            console("patient", &patient),
            console("strict", &strict),
            source("database", "postgres", origin),
        ],
        EVERY,
        TIMEOUT,
    ));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (calm, strained) = (Arc::default(), Arc::default());
        let mut clients = JoinSet::new();
        for (url, count, hold, waits) in [
            (patient.url(), 40, 50, &calm),
            (strict.url(), 36, 250, &strained),
        ] {
            for number in 0..count {
                let (url, running, waits) = (url.clone(), Arc::clone(&running), Arc::clone(waits));
                clients.spawn(async move {
                    tokio::time::sleep(ARRIVE * number / count).await;
                    let mean = Duration::from_millis(hold);
                    client(url, (mean, number), running, waits).await;
                });
            }
        }
        tokio::time::sleep(RAMP).await;
        let begin = running.clock.now();
        tokio::time::sleep(MEASURED).await;
        let window = begin..running.clock.now();
        within_5_percent(&running.so_far(0), &calm, &window);
        within_5_percent(&running.so_far(1), &strained, &window);
        let (_, in_vain) = measured(&strained, &window);
        assert!(
            (0.15..0.45).contains(&in_vain),
            "about 30 % wait in vain: {in_vain}"
        );
        let full = running.so_far(0).saturation(window.clone()).unwrap();
        assert!(full.mean > 0.9, "{full:?}");
        let of_database = running.so_far(2);
        let in_use = of_database.gauge(Signal::InUse, window.clone()).unwrap();
        assert!(
            (10.0..=14.0).contains(&in_use.mean),
            "two pools of five, and the idle consoles: {in_use:?}"
        );
        clients.shutdown().await;
        stall(&patient, &running).await;
    });
}

/// All connections are held, and more clients come: counters stand still, and `stalled` says so within two seconds.
async fn stall(bouncer: &PgBouncer, running: &Running) {
    let mut held = JoinSet::new();
    for _ in 0..POOL + 3 {
        let url = bouncer.url();
        held.spawn(async move {
            let client = connected(&url).await;
            // It ends with the test.
            drop(client.simple_query("select pg_sleep(30)").await);
        });
    }
    let begin = running.clock.now();
    let limit = begin.after(Duration::from_secs(2));
    loop {
        let now = running.clock.now();
        let series = running.so_far(0);
        let recent = Offset(now.0.saturating_sub(600_000))..now;
        if series.is_stalled(recent.clone()) == Some(true) {
            let counted = series
                .wait_mean(recent)
                .and_then(|wait| wait.by_counters_us);
            assert_eq!(
                counted.unwrap_or(0.0),
                0.0,
                "no wait has ended, so counters know of none"
            );
            break;
        }
        assert!(now < limit, "no stall is seen after two seconds");
        tokio::time::sleep(EVERY / 4).await;
    }
    held.shutdown().await;
}
