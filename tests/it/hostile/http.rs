//! HTTP servers that misbehave, all in one run of the program: a group of riders for each, and its server's log beside the report.

use super::peer::{Move, Peer, Said, drip, http, serve};
use super::stage::{count, ended_after, operation, run};
use crate::support::program::Home;
use crate::support::service::free_port;
use serde_json::Value;
use std::time::Duration;

/// Of each group: 5/s for 2 s.
const RIDERS: usize = 10;
const TIMEOUT: Duration = Duration::from_secs(1);
const FINE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{\"id\": \"7\"}";

/// One kind of misbehaviour.
pub(super) struct Row {
    pub name: &'static str,
    /// After the method and the address of the step.
    pub step: &'static str,
    /// What the server does about each request.
    pub moves: Vec<Move>,
    /// How each attempt ends.
    pub outcome: &'static str,
    /// Attempts for each rider.
    pub attempts: usize,
}

fn row(name: &'static str, moves: Vec<Move>, outcome: &'static str) -> Row {
    Row {
        name,
        step: "",
        moves,
        outcome,
        attempts: 1,
    }
}

fn keeping(name: &'static str, bytes: &[u8], outcome: &'static str) -> Row {
    Row {
        step: ", keep: { id: $.id }",
        ..row(name, says(bytes), outcome)
    }
}

pub(super) fn says(bytes: &[u8]) -> Vec<Move> {
    vec![Move::Write(bytes.to_vec())]
}

fn then(bytes: &[u8], end: Move) -> Vec<Move> {
    vec![Move::Write(bytes.to_vec()), end]
}

/// Connections that hang, or are slow.
pub(super) fn slow() -> Vec<Row> {
    const OUTCOME: &str = "timed out";
    let hundred = b"HTTP/1.1 100 Continue\r\n\r\n";
    let endless = (0..40).flat_map(|_| [Move::Write(hundred.to_vec()), Move::Wait(TIMEOUT / 20)]);
    vec![
        row("never-answers", Vec::new(), OUTCOME),
        row("hangs-in-status", says(b"HTTP/1.1 20"), OUTCOME),
        row(
            "hangs-in-head",
            says(b"HTTP/1.1 200 OK\r\ncontent-le"),
            OUTCOME,
        ),
        row(
            "hangs-in-body",
            says(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"),
            OUTCOME,
        ),
        row(
            "hangs-in-chunk",
            says(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhe"),
            OUTCOME,
        ),
        row("drips-too-slowly", drip(FINE, TIMEOUT / 10), OUTCOME),
        row("continues-for-ever", endless.collect(), OUTCOME),
        row("drips-in-time", drip(FINE, Duration::from_millis(4)), "ok"),
    ]
}

/// Connections that end before their answer does.
pub(super) fn ending() -> Vec<Row> {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{\"id\": \"7\"}";
    let chunk = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhe";
    let no_last_chunk = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n";
    vec![
        row("closes", vec![Move::Close], "reset"),
        row("resets", vec![Move::Reset], "reset"),
        row("closes-in-head", then(b"HTTP/1.1 2", Move::Close), "reset"),
        row("resets-in-head", then(b"HTTP/1.1 2", Move::Reset), "reset"),
        row("length-too-long", then(half, Move::Close), "reset"),
        row("resets-in-body", then(half, Move::Reset), "reset"),
        row("closes-in-chunk", then(chunk, Move::Close), "reset"),
        row("no-last-chunk", then(no_last_chunk, Move::Close), "reset"),
    ]
}

/// Answers that are no HTTP, or more of it than anybody needs.
pub(super) fn malformed() -> Vec<Row> {
    const OUTCOME: &str = "protocol";
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(1 << 20));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(500));
    vec![
        row("speaks-ssh", says(b"SSH-2.0-OpenSSH_9.6\r\n"), OUTCOME),
        row("long-header", says(long.as_bytes()), OUTCOME),
        row("many-headers", says(many.as_bytes()), OUTCOME),
        row(
            "two-lengths",
            says(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"),
            OUTCOME,
        ),
        row(
            "no-number-as-length",
            says(b"HTTP/1.1 200 OK\r\ncontent-length: some\r\n\r\nab"),
            OUTCOME,
        ),
        row(
            "no-number-as-chunk",
            says(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhe\r\n"),
            OUTCOME,
        ),
        keeping(
            "no-json",
            b"HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n<html></html>",
            OUTCOME,
        ),
        keeping(
            "other-json",
            b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{\"no\": \"7\"}",
            OUTCOME,
        ),
        keeping(
            "gzip-where-json-is-kept",
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\x01",
            OUTCOME,
        ),
        keeping(
            "no-body",
            b"HTTP/1.1 204 No Content\r\n\r\n",
            OUTCOME,
        ),
    ]
}

/// Answers that are odd and mean something all the same.
pub(super) fn odd() -> Vec<Row> {
    let after = |first: &[u8]| says(&[first, FINE].concat());
    vec![
        row("fine", says(FINE), "ok"),
        Row {
            moves: then(b"HTTP/1.0 200 OK\r\n\r\n{\"id\": \"7\"}", Move::Close),
            ..keeping("http-1-0-without-length", b"", "ok")
        },
        Row {
            moves: then(b"HTTP/1.1 200 OK\r\n\r\n{\"id\": \"7\"}", Move::Close),
            ..keeping("body-to-the-end", b"", "ok")
        },
        // Nobody asked for compression, and nobody reads the body.
        row(
            "bad-gzip",
            says(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\njunk"),
            "ok",
        ),
        row(
            "continue-unasked",
            after(b"HTTP/1.1 100 Continue\r\n\r\n"),
            "ok",
        ),
        row(
            "early-hints",
            after(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"),
            "ok",
        ),
        row(
            "no-content-with-body",
            says(b"HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello"),
            "ok",
        ),
        row(
            "switches-protocols",
            says(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"),
            "refused 101",
        ),
        row(
            "status-of-nobody",
            says(b"HTTP/1.1 799 Odd\r\ncontent-length: 0\r\n\r\n"),
            "refused 799",
        ),
        row(
            "not-modified",
            says(b"HTTP/1.1 304 Not Modified\r\ncontent-length: 11\r\n\r\n"),
            "refused 304",
        ),
    ]
}

/// Plain refusals; the last one is tried again.
fn refusals(stranger: &Peer) -> Vec<Row> {
    let redirect = |status: &str| {
        let location = format!("location: http://{}/", stranger.address);
        says(format!("HTTP/1.1 {status}\r\n{location}\r\ncontent-length: 0\r\n\r\n").as_bytes())
    };
    let busy = |status: &str| {
        says(format!("HTTP/1.1 {status}\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n").as_bytes())
    };
    vec![
        row("redirects", redirect("302 Found"), "refused 302"),
        row(
            "redirects-for-good",
            redirect("308 Permanent Redirect"),
            "refused 308",
        ),
        row("says-429", busy("429 Too Many Requests"), "refused 429"),
        row("says-503", busy("503 Service Unavailable"), "refused 503"),
        Row {
            attempts: 3,
            ..row(
                "says-503-thrice",
                busy("503 Service Unavailable"),
                "refused 503",
            )
        },
    ]
}

pub(super) async fn server(moves: Vec<Move>) -> Peer {
    serve(http, move |said: &Said| {
        if said.nth == 0 {
            Vec::new()
        } else {
            moves.clone()
        }
    })
    .await
}

/// The two files for these servers; the name of a journey is that of its step with a `j-`.
fn files(rows: &[(Row, Peer)], nobody: u16) -> (String, String) {
    let mut target = "about: Everything goes wrong.\nenvironment: test\njourneys:\n".to_owned();
    let mut profile = format!(
        "target: target.yaml\nduration: 2s\ndrain: 2s\nexpect: [ fine success == 100% ]\nriders:\n{}",
        group("nobody", 1)
    );
    let nobody = format!("http://127.0.0.1:{nobody}/");
    let step = |name: &str, address: &str, rest: &str| {
        format!("  j-{name}: {{ steps: {{ {name}: {{ get: \"{address}\"{rest} }} }} }}\n")
    };
    target += &step("nobody", &nobody, "");
    for (row, peer) in rows {
        target += &step(row.name, &format!("http://{}/", peer.address), row.step);
        profile += &group(row.name, row.attempts);
    }
    (profile, target)
}

fn group(name: &str, attempts: usize) -> String {
    format!(
        "  g-{name}: {{ journey: j-{name}, arrivals: {{ even: [ 5/s for 2s ] }}, timeout: {}s, max_in_flight: 40, \
         retry: {{ fixed: {{ every: 100ms, attempts: {attempts} }} }} }}\n",
        TIMEOUT.as_secs()
    )
}

/// All attempts of an operation ended in this way, and nothing is missing in its account.
fn check(result: &Value, name: &str, outcome: &str, attempts: usize) {
    let row = operation(result, name);
    assert_eq!(count(row, "started"), RIDERS, "{name}");
    assert_eq!(count(row, "attempts"), attempts, "{name}: {row}");
    let outcomes = row["outcomes"].as_array().unwrap();
    assert_eq!(outcomes.len(), 1, "{name}: {outcomes:?}");
    assert_eq!(outcomes[0]["outcome"], outcome, "{name}");
    assert_eq!(count(&outcomes[0], "attempts"), attempts, "{name}");
    assert_eq!(count(&outcomes[0], "actions"), RIDERS, "{name}");
    let ends = ["ok", "declined", "failed", "timed_out", "unfinished"];
    let sum: usize = ends.iter().map(|end| count(row, end)).sum();
    assert_eq!(sum, RIDERS, "{name}: {row}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_misbehaviour_of_an_api_has_its_outcome_and_the_servers_count() {
    let stranger = server(says(FINE)).await;
    let mut rows = Vec::new();
    let all = [slow(), ending(), malformed(), odd(), refusals(&stranger)];
    for row in all.into_iter().flatten() {
        let peer = server(row.moves.clone()).await;
        rows.push((row, peer));
    }
    let (profile, target) = files(&rows, free_port());
    let home = Home::new();
    let finished = run(&home, &profile, &target).await;
    finished.expect_code(0);
    let result = finished.result();
    check(&result, "nobody", "unreachable", RIDERS);
    for (row, peer) in &rows {
        let wanted = RIDERS * row.attempts;
        assert_eq!(peer.said(), wanted, "{}: requests that arrived", row.name);
        check(&result, row.name, row.outcome, wanted);
        if row.outcome == "timed out" {
            ended_after(peer, TIMEOUT, wanted, row.name);
        }
    }
    assert_eq!(stranger.accepted(), 0, "nobody follows a redirect");
    // 51 bytes, 4 ms apart: the latency is that of the last byte.
    let dripped = count(&operation(&result, "drips-in-time")["latency"], "p50_us");
    assert!(dripped >= 4_000 * (FINE.len() - 1), "{dripped}");
}
