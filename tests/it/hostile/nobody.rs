//! A fleet that finds nobody listening: it backs off, costs next to nothing and says little.

use super::stage::{count, operation, plan};
use crate::agents::target::{Connect, Target};
use crate::agents::world::World;
use crate::support::program::{Home, eventually};
use crate::support::service::free_port;
use nix::sys::signal::Signal;
use rushhour::event::{Event, Offset, Outcome};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const HUBS: usize = 100;
const WATCHED: Duration = Duration::from_secs(10);

/// 100 hubs that connect at once and back off from 1 s to 30 s, doubling, with full jitter.
const PROFILE: &str = "target: target.yaml
seed: 7
duration: 60s
expect: [ hubs connected >= 0% ]
hubs:
  homes:
    device: hub
    count: 100
    connect: { over: 0s }
    reconnect: { full_jitter: { base: 1s, cap: 30s } }
";

fn target(port: u16) -> String {
    format!(
        "environment: test\ndevices: {{ hub: {{ shards: {{ only: \"mqtt://127.0.0.1:{port}\" }} }} }}\n"
    )
}

/// Attempts of each hub within the watched time, by its own decisions alone: no clock and no socket is part of it.
fn attempts_by_decision() -> Vec<usize> {
    let nobody = Target {
        connect: Box::new(|_, _| Connect::Fails(Outcome::Unreachable)),
        ..Target::healthy(7)
    };
    let mut world = World::new(plan(PROFILE, &target(9)), nobody);
    world.run_until(Offset::ZERO.after(WATCHED));
    let mut attempts: BTreeMap<u64, usize> = BTreeMap::new();
    for (agent, event) in &world.told {
        if matches!(event, Event::Attempted { .. }) {
            *attempts.entry(agent.index).or_default() += 1;
        }
    }
    attempts.into_values().collect()
}

#[test]
fn on_average_at_most_six_attempts_a_hub_in_ten_seconds_and_none_above_ten() {
    let attempts = attempts_by_decision();
    assert_eq!(attempts.len(), HUBS);
    let sum: usize = attempts.iter().sum();
    assert!(sum <= 6 * HUBS && sum > 2 * HUBS, "{sum} attempts");
    assert!(attempts.iter().all(|of_one| *of_one <= 10), "{attempts:?}");
}

/// Processor time of a process so far.
fn cpu(id: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    // The name in parentheses may hold spaces; user and system time are the 12th and 13th field behind it, in hundredths.
    let fields: Vec<&str> = text
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

/// The program itself, by its processor time, its output and its report. 5 % of a core are 0.5 s in 10 s.
#[test]
fn the_program_costs_and_says_little() {
    let home = Home::new();
    home.write("target.yaml", &target(free_port()));
    let profile = home.write("profile.yaml", PROFILE).display().to_string();
    let running = home.start(&["run", &profile], &[]);
    eventually("the run has begun", Duration::from_secs(20), || {
        let files = home.files();
        files
            .iter()
            .any(|(path, _)| path.ends_with("events.jsonl"))
            .then_some(())
    });
    let (began, before) = (Instant::now(), cpu(running.id()));
    std::thread::sleep(WATCHED);
    let (lasted, used) = (began.elapsed(), cpu(running.id()) - before);
    let said = running.stdout() + &running.stderr();
    running.signal(Signal::SIGINT);
    let finished = running.wait(Duration::from_secs(20));
    finished.expect_code(130);
    assert!(used * 20 < lasted, "{used:?} in {lasted:?}");
    assert!(said.lines().count() <= 25, "{said}");
    let result = finished.result();
    let connect = operation(&result, "connect");
    let attempts = count(connect, "attempts");
    // The same dice decide in both; the program went on for a moment until it had seen the signal.
    let expected: usize = attempts_by_decision().iter().sum();
    assert!(
        attempts >= expected * 9 / 10 && attempts <= 6 * HUBS,
        "{attempts} where {expected} were decided"
    );
    assert_eq!(count(connect, "started"), HUBS);
    assert_eq!(count(connect, "unfinished"), HUBS);
    let outcomes = connect["outcomes"].as_array().unwrap();
    assert_eq!(count(&outcomes[0], "attempts"), attempts);
    assert_eq!(outcomes[0]["outcome"], "unreachable");
}
