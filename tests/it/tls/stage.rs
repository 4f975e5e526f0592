//! A plan from the files that a user would write, its hubs against the servers of the test, and the report of it.

use crate::support::program::Home;
use rushhour::event::Sink;
use rushhour::live::hubs::{self, HubFleet};
use rushhour::measure::recovery::Ending;
use rushhour::measure::{Collector, Judge, Shard};
use rushhour::net::clock::Clock;
use rushhour::net::hosts::Hosts;
use rushhour::plan::Plan;
use rushhour::report::data::{OperationRow, TroubleRow};
use rushhour::report::{Facts, Report, build};
use rushhour::spec::{Sources, read};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longer than any wait of these tests on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Hubs that run and are measured.
pub struct Stage {
    fleet: HubFleet,
    collector: Collector,
    clock: Clock,
}

/// The plan of the two files in `home`; `target.yaml` and `profile.yaml` without their heads.
pub fn plan(home: &Home, devices: &str, hubs: &str) -> Plan {
    home.write(
        "target.yaml",
        &format!("environment: test\ntrust: ca.pem\n{devices}"),
    );
    let profile = format!(
        "target: target.yaml\nduration: 60s\nexpect: [ hubs connected >= 0% ]\nhubs:\n{hubs}"
    );
    let sources = Sources {
        profile: home.write("profile.yaml", &profile),
        ..Sources::default()
    };
    read(&sources).unwrap_or_else(|problems| panic!("{problems}"))
}

pub async fn start(plan: Plan) -> Stage {
    let plan = Arc::new(plan);
    let hosts = Arc::new(Hosts::of(&plan.target).unwrap());
    let clock = Clock::start();
    let (collector, shards) = Collector::new(&plan, 2);
    let sink = |shard: &Arc<Shard>| -> Sink {
        let shard = Arc::clone(shard);
        Arc::new(move |event| shard.record(&event))
    };
    let sinks: Vec<Sink> = shards.iter().map(sink).collect();
    let fleet = hubs::start(&plan, &hosts, clock, "rtls", &sinks)
        .await
        .unwrap();
    Stage {
        fleet,
        collector,
        clock,
    }
}

/// Waits for what servers see.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < end, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

impl Stage {
    pub async fn stands(&self) {
        assert!(self.fleet.all_stand(LIMIT).await, "not every hub stands");
    }

    /// Ends it and reports.
    pub async fn report(mut self) -> Report {
        assert_eq!(self.fleet.stop(LIMIT).await, 0);
        self.collector.finish(self.clock.now());
        let judged = Judge::new(&self.collector, &[], &[]).verdict();
        let recoveries = self.collector.recoveries(&[], Ending::Settled);
        build(&self.collector, &judged, &[], &recoveries, Facts::default())
    }
}

/// The row of an operation of a group.
pub fn operation<'a>(report: &'a Report, group: &str, name: &str) -> &'a OperationRow {
    let mut rows = report.operations.iter();
    rows.find(|row| row.group == group && row.name == name)
        .unwrap_or_else(|| panic!("no {name} of {group}"))
}

/// How often attempts of it ended like this.
pub fn attempts(row: &OperationRow, outcome: &str) -> u64 {
    let outcome = row.outcomes.iter().find(|row| row.outcome == outcome);
    outcome.map_or(0, |outcome| outcome.attempts)
}

/// What was wrong with connects of a group.
pub fn troubles<'a>(report: &'a Report, group: &str) -> Vec<&'a TroubleRow> {
    let rows = report.troubles.iter();
    rows.filter(|row| row.group == group).collect()
}
