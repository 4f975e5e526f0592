//! Every origin but Prometheus texts, over real sockets and processes: JSON, programs, `$SYS` topics, SQL.

use super::metrics_server::MetricsServer;
use super::running::Running;
use crate::support::postgres::postgres;
use crate::support::service::mosquitto_with;
use rushhour::event::Offset;
use rushhour::measure::pool::{GapReason, PoolSeries, Sample};
use rushhour::plan::Template;
use rushhour::plan::probe::{Origin, Plays, ProbeSource, Reading, SeriesSelector, Signals};
use rushhour::plan::signal::Signal;
use rushhour::probe::canary;
use std::net::TcpStream;
use std::time::Duration;

const EVERY: Duration = Duration::from_millis(200);
const TIMEOUT: Duration = Duration::from_millis(180);

fn source(plays: Plays, origin: Origin, signals: Signals) -> ProbeSource {
    ProbeSource {
        name: "tried".to_owned(),
        plays,
        origin,
        labels: Vec::new(),
        signals,
    }
}

fn preset(name: &str) -> Signals {
    Signals::Preset(name.to_owned())
}

fn gauge(signal: Signal, metric: &str, scale: f64) -> (String, Reading) {
    let pick = SeriesSelector::named(metric, scale);
    (signal.name().to_owned(), Reading::Gauge(pick))
}

fn program(words: &[&str]) -> Origin {
    Origin::Command(words.iter().map(|word| Template::literal(word)).collect())
}

fn good(sample: &Sample) -> bool {
    sample.instances.iter().all(Result::is_ok)
}

fn gap(samples: &[Sample], reason: GapReason) -> bool {
    samples
        .iter()
        .flat_map(|sample| &sample.instances)
        .any(|instance| instance.as_ref().is_err_and(|gap| gap.reason == reason))
}

fn last(series: &PoolSeries, signal: Signal) -> Option<f64> {
    let whole = Offset::ZERO..Offset(u64::MAX);
    series.gauge(signal, whole).map(|span| span.last)
}

fn run(source: ProbeSource) -> Running {
    Running::of(vec![source], EVERY, TIMEOUT)
}

#[test]
fn a_json_document_is_read_at_its_paths() {
    let server = MetricsServer::start(
        r#"{"pool": {"waiting": 4, "oldest_ms": 250, "busy": [3, 5]}, "note": "x"}"#,
    );
    let signals = Signals::Own(vec![
        gauge(Signal::Waiting, "$.pool.waiting", 1.0),
        gauge(Signal::WaitMax, "$.pool.oldest_ms", 1e3),
        gauge(Signal::InUse, "$.pool.busy[*]", 1.0),
        ("max".to_owned(), Reading::Fixed(10.0)),
        gauge(Signal::Saturation, "$.note", 1.0),
    ]);
    let origin = Origin::Json(vec![Template::literal(&server.url())]);
    let running = run(source(Plays::Pool, origin, signals));
    running.wait(0, "a reading", |samples| samples.iter().any(good));
    let told = running.told();
    server.say("no JSON");
    running.wait(told, "a gap", |samples| gap(samples, GapReason::Unreadable));
    let (series, _) = running.series();
    assert_eq!(last(&series, Signal::Waiting), Some(4.0));
    assert_eq!(last(&series, Signal::WaitMax), Some(250_000.0));
    assert_eq!(last(&series, Signal::InUse), Some(8.0));
    // The text at `$.note` is no number, so the fixed size decides.
    assert_eq!(last(&series, Signal::Saturation), Some(0.8));
}

#[test]
fn a_program_is_asked_and_one_that_hangs_or_fails_is_a_gap() {
    let depth = || Signals::Own(vec![gauge(Signal::Depth, "depth", 1.0)]);
    let running = run(source(
        Plays::Queue,
        program(&["printf", "depth{queue=\"a\"} 3\\ndepth{queue=\"b\"} 4\\n"]),
        depth(),
    ));
    running.wait(0, "a reading", |samples| samples.iter().any(good));
    let (series, _) = running.series();
    assert_eq!(last(&series, Signal::Depth), Some(7.0));

    for (words, reason) in [
        (["sleep", "3"], GapReason::TimedOut),
        (["false", ""], GapReason::Refused),
        (["printf", "nothing of ours"], GapReason::NothingFound),
        (["/no/such/program", ""], GapReason::Unreachable),
    ] {
        let running = run(source(Plays::Queue, program(&words), depth()));
        running.wait(0, words[0], |samples| gap(samples, reason));
    }
}

/// Connects that come and go between two readings are counted, though mosquitto only publishes a load average.
#[test]
fn a_mosquitto_that_counts_no_connects_tells_them_all_the_same() {
    let Some(broker) = mosquitto_with(|_| "allow_anonymous true\nsys_interval 1\n".to_owned())
    else {
        return;
    };
    let at = Template::literal(&format!("mqtt://{}", broker.address()));
    let running = run(source(Plays::Broker, Origin::Sys(at), preset("mosquitto")));
    running.wait(0, "a reading", |samples| samples.iter().any(good));
    let standing: Vec<TcpStream> = (0..40).map(|number| hub(broker.port, number)).collect();
    (40..60).for_each(|number| drop(hub(broker.port, number)));
    let told = |running: &Running| {
        let series = running.so_far(0);
        let grew = |signal| {
            let whole = Offset::ZERO..Offset(u64::MAX);
            series.increase_of(signal, whole).unwrap_or(0.0)
        };
        (grew(Signal::Connects), grew(Signal::Disconnects))
    };
    let begin = std::time::Instant::now();
    while told(&running).0 < 59.0 {
        assert!(
            begin.elapsed() < Duration::from_secs(12),
            "{:?}",
            told(&running)
        );
        std::thread::sleep(EVERY);
    }
    let (connects, disconnects) = told(&running);
    // The probe's own connect may fall into the first interval.
    assert!((59.0..=61.5).contains(&connects), "{connects}");
    assert!((19.0..=21.5).contains(&disconnects), "{disconnects}");
    drop(standing);
}

/// An MQTT session of this number; it stands as long as the socket is kept.
fn hub(port: u16, number: u8) -> TcpStream {
    use std::io::{Read, Write};
    let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let id = format!("h{number:02}");
    let mut connect = vec![0x10, 15, 0, 4];
    connect.extend_from_slice(b"MQTT\x04\x02\x00\x3c\x00\x03");
    connect.extend_from_slice(id.as_bytes());
    socket.write_all(&connect).unwrap();
    let mut answer = [0; 4];
    socket.read_exact(&mut answer).unwrap();
    assert_eq!(answer, [0x20, 2, 0, 0]);
    socket
}

#[test]
fn a_query_of_ones_own_is_asked_over_one_connection() {
    let Some(database) = postgres() else { return };
    let query = "select 'a' as kind, 3 as waiting, 0.25 as wait_max, count(*) as in_use from pg_stat_activity \
                 where backend_type = 'client backend'";
    let origin = Origin::Sql {
        at: Template::literal(&database.url()),
        query: Some(query.to_owned()),
    };
    let own = Signals::Own(vec![
        gauge(Signal::Waiting, "waiting", 1.0),
        gauge(Signal::WaitMax, "wait_max", 1e6),
        gauge(Signal::InUse, "in_use", 1.0),
    ]);
    let running = run(source(Plays::Pool, origin, own));
    running.wait(0, "six readings", |samples| {
        samples.iter().filter(|sample| good(sample)).count() >= 6
    });
    let series = running.so_far(0);
    assert_eq!(last(&series, Signal::Waiting), Some(3.0));
    assert_eq!(last(&series, Signal::WaitMax), Some(250_000.0));
    let in_use = series.gauge(Signal::InUse, Offset::ZERO..Offset(u64::MAX));
    assert_eq!(
        in_use.unwrap().max,
        1.0,
        "the probe's own connection, and never a second one"
    );
    let told = running.told();
    drop(database);
    running.wait(told, "a gap", |samples| {
        gap(samples, GapReason::Unreachable) || gap(samples, GapReason::Refused)
    });
}

/// What the request to the database takes longer than usual is the wait; if the other one gets as slow, it is not the pool.
#[test]
fn a_pair_of_canaries_tells_a_pool_from_its_service() {
    let (with, without) = (MetricsServer::start("ok"), MetricsServer::start("ok"));
    let origin = Origin::Canary {
        with: Template::literal(&with.url()),
        without: Template::literal(&without.url()),
    };
    let signals = Signals::Own(vec![gauge(Signal::Wait, canary::WAIT, 1.0)]);
    let running = run(source(Plays::Pool, origin, signals));
    let rounds = |wanted: usize| {
        let told = running.told();
        running.wait(told, "further rounds", |samples| {
            samples.iter().filter(|sample| good(sample)).count() >= wanted
        });
    };
    let wait_ms = |from: Offset| {
        let window = from..running.clock.now();
        running.so_far(0).wait_mean(window).unwrap().judged_us / 1e3
    };
    // What is usual is known after ten of them.
    rounds(10);
    with.answer_after(Duration::from_millis(80));
    // One pair may be on its way while the server changes.
    rounds(1);
    let from = running.clock.now();
    rounds(3);
    let pool = wait_ms(from);
    assert!((70.0..160.0).contains(&pool), "{pool} ms of 80");
    without.answer_after(Duration::from_millis(80));
    rounds(1);
    let from = running.clock.now();
    rounds(3);
    let service = wait_ms(from);
    assert!(
        service < 45.0,
        "{service} ms, although the service is as slow"
    );
}
