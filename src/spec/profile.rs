//! The profile file: who takes part, what happens when, what is expected.

use super::dock;
use super::fields::Fields;
use super::fleet::{self, Around};
use super::identities;
use super::moment::Draft;
use super::reader::At;
use super::readmission;
use super::target::Names;
use super::timeline::{self, Stage};
use crate::plan::Plan;
use crate::plan::operation;
use crate::plan::target::Target;
use std::path::Path;
use std::time::Duration;

const SEED: u64 = 1;
const BASELINE: Duration = Duration::from_secs(60);
const SUSTAIN: Duration = Duration::from_secs(30);
const SETTLE: Duration = Duration::from_secs(120);
const DRAIN: Duration = Duration::from_secs(10);

/// A plan without its expectations, and where those are written.
pub(super) struct Profile<'a> {
    pub plan: Plan,
    pub names: Names,
    pub expect: Vec<At<'a>>,
    /// Whether every group, the target and the timeline could be read, so that rows of the plan's lists can be trusted.
    pub is_whole: bool,
}

/// Reads a profile. `seed` stands in place of its own.
pub(super) fn read<'a>(
    root: &At<'a>,
    file: &Path,
    (target, names): (Target, Names),
    seed: Option<u64>,
) -> Option<Profile<'a>> {
    let mut fields = root.fields()?;
    let mut plan = terms(&mut fields, file, target, seed);
    let groups = ["riders", "hubs", "issuers", "docks"].map(|key| fields.get(key));
    if !["riders", "hubs", "issuers", "docks"]
        .iter()
        .any(|key| fields.has(key))
    {
        root.wrong_key("nobody takes part", "add `hubs:`, `riders:` or `issuers:`");
    }
    let [riders, hubs, issuers, docks] = groups;
    let dock_groups = docks.as_ref().map(At::keys).unwrap_or_default();
    let hub_groups = hubs.as_ref().map(At::keys).unwrap_or_default();
    let around = Around {
        target: &plan.target,
        names: &names,
        seed: plan.seed,
        duration: plan.duration,
        file,
        hub_groups: &hub_groups,
    };
    let mut hubs = each(hubs, |name, at| fleet::hubs(name, at, &around));
    let mut riders = each(riders, |name, at| fleet::riders(name, at, &around));
    let issuers = each(issuers, |name, at| fleet::issuers(name, at, &around, &hubs));
    let docks = each(docks, |name, at| dock::docks(name, at, &around));
    identities::assign(&mut hubs, &mut riders, &issuers, &plan.target, root);
    let stage = Stage {
        target: &plan.target,
        names: &names,
        duration: plan.duration,
        hub_groups: &hub_groups,
        dock_groups: &dock_groups,
    };
    let mut triggers = each(fields.get("timeline"), |name, at| {
        timeline::trigger(name, at, &stage)
    });
    triggers.sort_by_key(|trigger| trigger.at);
    if hubs.len() == hub_groups.len() {
        let counts: Vec<u32> = hubs.iter().map(|group| group.count).collect();
        readmission::set_lasts(&mut triggers, &counts);
    }
    let expect = fields
        .get("expect")
        .and_then(|at| at.items())
        .unwrap_or_default();
    fields.finish(&[]);
    let is_whole = root.log().is_clean();
    if is_whole {
        plan.operations = operation::table(&hubs, &riders, &issuers, &plan.target);
        plan.operations.extend(operation::dock_rows(&docks));
    }
    plan.hubs = hubs;
    plan.riders = riders;
    plan.issuers = issuers;
    plan.docks = docks;
    plan.triggers = triggers;
    Some(Profile {
        plan,
        names,
        expect,
        is_whole,
    })
}

/// What a profile says of the run as a whole.
fn terms(fields: &mut Fields<'_>, file: &Path, target: Target, seed: Option<u64>) -> Plan {
    let about = fields
        .get("about")
        .and_then(|at| at.text())
        .unwrap_or_default()
        .to_owned();
    let series = fields
        .get("series")
        .and_then(|at| at.text())
        .map(str::to_owned);
    // Read by whoever loads the files.
    fields.get("target");
    let own_seed = fields.get("seed").and_then(|at| at.count(0..=u64::MAX));
    Plan {
        profile: file.to_owned(),
        about,
        series,
        seed: seed.or(own_seed).unwrap_or(SEED),
        duration: fields
            .need("duration")
            .and_then(|at| at.time())
            .unwrap_or_default(),
        baseline: fields
            .get("baseline")
            .and_then(|at| at.time())
            .unwrap_or(BASELINE),
        sustain: fields
            .get("sustain")
            .and_then(|at| at.time())
            .unwrap_or(SUSTAIN),
        settle: fields
            .get("settle")
            .and_then(|at| at.duration())
            .unwrap_or(SETTLE),
        drain: fields
            .get("drain")
            .and_then(|at| at.duration())
            .unwrap_or(DRAIN),
        target,
        hubs: Vec::new(),
        riders: Vec::new(),
        issuers: Vec::new(),
        docks: Vec::new(),
        triggers: Vec::new(),
        faults: Vec::new(),
        steady: Vec::new(),
        stop_if: Vec::new(),
        pause_while: Vec::new(),
        expect: Vec::new(),
        against: None,
        operations: Vec::new(),
    }
}

fn each<'a, T>(at: Option<At<'a>>, read: impl Fn(&str, &At<'a>) -> Option<T>) -> Vec<T> {
    let entries = at.and_then(|at| at.named()).unwrap_or_default();
    entries
        .iter()
        .filter_map(|(name, at)| read(name, at))
        .collect()
}

/// What one experiment file adds to a plan.
pub(super) struct Experiment<'a> {
    pub faults: Vec<Draft<'a>>,
    pub steady: Vec<At<'a>>,
    pub stop_if: Vec<At<'a>>,
    pub expect: Vec<At<'a>>,
}

/// Reads an experiment that is to run with `plan` and with the faults of other experiments, which are `known`.
pub(super) fn experiment<'a>(
    root: &At<'a>,
    plan: &Plan,
    names: &Names,
    known: &[&str],
) -> Option<Experiment<'a>> {
    let mut fields = root.fields()?;
    if let Some(at) = fields.get("about") {
        at.text();
    }
    let mut lines = |key| {
        fields
            .get(key)
            .and_then(|at| at.items())
            .unwrap_or_default()
    };
    let steady = lines("steady");
    let stop_if = lines("stop_if");
    let expect = lines("expect");
    let hub_groups: Vec<String> = plan.hubs.iter().map(|group| group.name.clone()).collect();
    let stage = Stage {
        target: &plan.target,
        names,
        duration: plan.duration,
        hub_groups: &hub_groups,
        dock_groups: &[],
    };
    let faults_at = fields.need("faults");
    for (name, at) in faults_at
        .as_ref()
        .and_then(|at| at.entries())
        .unwrap_or_default()
    {
        let is_taken =
            plan.triggers.iter().any(|trigger| trigger.name == name) || known.contains(&name);
        if is_taken {
            at.wrong_key(
                format!("another trigger or fault is called `{name}`"),
                "give one of them another name",
            );
        }
    }
    let faults = each(faults_at, |name, at| timeline::fault(name, at, &stage));
    fields.finish(&[]);
    Some(Experiment {
        faults,
        steady,
        stop_if,
        expect,
    })
}
