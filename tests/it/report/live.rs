//! The line while a run goes on.

use super::scene;
use crate::measure::stage::{Stage, UNLOCK};
use rushhour::event::{HubChange, Outcome};
use rushhour::measure::Live;
use rushhour::watch::terminal::{LiveLine, line};

fn live(time_s: i64) -> Live {
    Live {
        time_s,
        phase: "load, drop".to_owned(),
        hubs_connected: 4_902,
        hubs_total: 8_000,
        arrivals_per_second: 120.04,
        success: Some(0.982),
        latency_p95_us: vec![("unlock".to_owned(), 1_200_000)],
        in_flight: 87,
        commands_open: 3,
        pool_wait_us: Some(12_300.0),
    }
}

#[test]
fn the_line_says_how_the_run_stands() {
    let text = line(&live(125));
    assert_eq!(
        text,
        "  2:05  load, drop  hubs 4,902/8,000  120/s  ok 98.2%  p95 unlock 1.20 s  in flight 87  pool wait …"
    );
}

#[test]
fn a_terminal_gets_one_line_that_is_written_over() {
    let mut out = Vec::new();
    let mut shown = LiveLine::new(&mut out, true);
    shown.show(&live(1)).unwrap();
    shown.show(&live(2)).unwrap();
    shown.say("drop begins").unwrap();
    shown.show(&live(3)).unwrap();
    shown.finish().unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(
        text.matches('\n').count(),
        2,
        "the word that stays, and the end"
    );
    assert_eq!(text.matches('\r').count(), 4);
}

#[test]
fn elsewhere_a_line_comes_every_five_seconds() {
    let mut out = Vec::new();
    let mut shown = LiveLine::new(&mut out, false);
    for second in 20..27 {
        shown.show(&live(second)).unwrap();
    }
    // 0:00: the time starts anew.
    for second in 0..12 {
        shown.show(&live(second)).unwrap();
    }
    let text = String::from_utf8(out).unwrap();
    let times: Vec<&str> = text
        .lines()
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert_eq!(times, ["0:20", "0:25", "0:00", "0:05", "0:10"]);
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn live_figures_are_those_of_the_last_seconds() {
    let mut stage = Stage::new(scene::plan_with_a_drop());
    stage.hubs(HubChange::Connected, 8, -1.0);
    for second in 0..20 {
        let outcome = if second < 15 {
            Outcome::Ok
        } else {
            Outcome::TimedOut
        };
        stage.action(UNLOCK, f64::from(second) + 0.1, 0.2, outcome);
    }
    stage.advance_to(19.5);
    let live = stage.collector.live(&[]);
    assert_eq!(
        (live.time_s, live.hubs_connected, live.hubs_total),
        (18, 8, 10)
    );
    // The seconds 13 to 17: two ok, three timed out.
    assert_eq!(live.success, Some(0.4));
    assert_eq!(live.phase, "load");
    assert_eq!(live.latency_p95_us.len(), 1);
}
