//! YAML in, plan out.
//!
//! [`read`] takes the files of one run and gives a checked [`Plan`], or every problem at once with its place. This module
//! knows how files are written; what the run does with them is none of its business.

mod address;
mod alerts;
mod checks;
mod command;
mod component;
mod device;
mod dock;
mod expectation;
mod fields;
mod find;
mod fleet;
mod grammar;
mod identities;
mod journey;
mod link_fault;
mod load;
mod log;
mod message;
mod moment;
mod operation;
mod places;
mod policy;
mod probe_reading;
mod probe_source;
mod probes;
mod problem;
mod profile;
mod reader;
mod readmission;
mod recorded;
mod resolve;
#[cfg(test)]
mod round_trip;
mod schedule;
pub mod schema;
mod session;
mod shape;
pub mod similar;
mod steps;
mod subject;
mod subject_probed;
mod subject_returns;
mod subject_stale;
mod subject_whole;
mod table;
mod target;
mod templates;
mod timeline;
mod tls;
mod token;
mod tree;
mod units;
mod wave;
mod witness;
mod words;

pub use problem::{Problem, Problems, Spot};

use crate::plan::{Pause, Plan, Target};
use checks::Files;
use log::Log;
use profile::Experiment;
use reader::At;
use resolve::{Grace, Role, Written};
use std::path::{Path, PathBuf};
use tree::Node;

/// The files and overrides that make up one run.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    pub profile: PathBuf,
    /// In place of the profile's own `target:`.
    pub target: Option<PathBuf>,
    /// Experiments, all of them part of the run.
    pub chaos: Vec<PathBuf>,
    /// In place of the profile's `seed:`.
    pub seed: Option<u64>,
    /// In place of the target's `lab: { database: … }`.
    pub database: Option<String>,
    /// Defects of the lab in addition to those of the target's `lab: { on: […] }`.
    pub on: Vec<String>,
}

/// Reads and checks everything.
///
/// # Errors
/// Every problem of every file, each with its place and a remedy.
pub fn read(sources: &Sources) -> Result<Plan, Problems> {
    let log = Log::default();
    match build(&log, sources) {
        Some(plan) if log.is_clean() => Ok(plan),
        _ => Err(log.into_problems()),
    }
}

/// Reads and checks a target file by itself.
///
/// # Errors
/// Every problem of the file, each with its place and a remedy.
pub fn read_target(path: &Path) -> Result<Target, Problems> {
    let log = Log::default();
    let root = load::load(&log, path);
    let target = root
        .as_ref()
        .and_then(|root| target::read(&At::root(&log, root), path, None, &[]));
    match target {
        Some((target, _)) if log.is_clean() => Ok(target),
        _ => Err(log.into_problems()),
    }
}

/// Every file that [`read`] reads: profile, target, experiments. Files that can't be read are named all the same.
#[must_use]
pub fn files(sources: &Sources) -> Vec<PathBuf> {
    let log = Log::default();
    let profile = load::load(&log, &sources.profile);
    let target = profile.and_then(|root| target_file(&At::root(&log, &root), sources));
    let mut files = vec![sources.profile.clone()];
    files.extend(target.or_else(|| sources.target.clone()));
    files.extend(sources.chaos.iter().cloned());
    files
}

/// The target file: that of the command line, or the profile's own, which is relative to the profile.
fn target_file(profile: &At<'_>, sources: &Sources) -> Option<PathBuf> {
    if let Some(target) = &sources.target {
        return Some(target.clone());
    }
    let named = profile.find(&["target"]);
    if named.path.is_empty() {
        profile.wrong_key(
            "`target` is missing",
            "add `target: targets/lab.yaml`, or give `--target FILE`",
        );
        return None;
    }
    named
        .text()
        .map(|path| target::beside(&sources.profile, path))
}

fn build(log: &Log, sources: &Sources) -> Option<Plan> {
    let profile_root = load::load(log, &sources.profile);
    let profile_root = profile_root.as_ref().map(|root| At::root(log, root));
    let target_path = match &profile_root {
        Some(root) => target_file(root, sources),
        None => sources.target.clone(),
    };
    let target_root = target_path.as_ref().and_then(|path| load::load(log, path));
    let target = target_root
        .as_ref()
        .zip(target_path.as_ref())
        .and_then(|(root, path)| {
            target::read(
                &At::root(log, root),
                path,
                sources.database.as_deref(),
                &sources.on,
            )
        });
    let chaos: Vec<Option<Node>> = sources
        .chaos
        .iter()
        .map(|path| load::load(log, path))
        .collect();
    let chaos: Vec<At<'_>> = chaos
        .iter()
        .flatten()
        .map(|root| At::root(log, root))
        .collect();
    let (profile_root, target_root) = (profile_root?, target_root.as_ref()?);
    let profile = profile::read(&profile_root, &sources.profile, target?, sources.seed)?;
    let mut plan = profile.plan;
    let mut experiments: Vec<Experiment<'_>> = Vec::new();
    let mut drafts: Vec<moment::Draft<'_>> = Vec::new();
    for root in &chaos {
        let known: Vec<&str> = drafts.iter().map(|draft| draft.name.as_str()).collect();
        if let Some(mut experiment) = profile::experiment(root, &plan, &profile.names, &known) {
            drafts.append(&mut experiment.faults);
            experiments.push(experiment);
        }
    }
    moment::settle(&mut plan, &drafts);
    let is_whole = profile.is_whole && log.is_clean();
    let pauses = readmission::pauses(&profile_root);
    let alerts = alerts::lines(&At::root(log, target_root));
    expectations(
        &mut plan,
        (profile.expect, pauses, alerts),
        experiments,
        is_whole,
    );
    if is_whole {
        let target = &At::root(log, target_root);
        checks::check(
            &plan,
            &Files {
                profile: &profile_root,
                target,
                chaos: &chaos,
            },
        );
    }
    Some(plan)
}

/// Lines of the profile, of its readmissions, and of the target.
type OwnLines<'a> = (
    Vec<At<'a>>,
    Vec<(String, Vec<Written<'a>>)>,
    Vec<(String, Written<'a>)>,
);

/// Reads every line, and finds its names where the plan is whole enough to have them.
fn expectations<'a>(
    plan: &mut Plan,
    (own, pauses, alerts): OwnLines<'a>,
    experiments: Vec<Experiment<'a>>,
    is_whole: bool,
) {
    let mut expect = resolve::lines(own, Role::Expect);
    let mut steady = Vec::new();
    let mut stop_if = Vec::new();
    for experiment in experiments {
        expect.extend(resolve::lines(experiment.expect, Role::Expect));
        steady.extend(resolve::lines(experiment.steady, Role::Guard));
        stop_if.extend(resolve::lines(experiment.stop_if, Role::Guard));
    }
    if is_whole {
        let grace = Grace::of(&expect, plan);
        plan.target.alerts = alerts::resolve(&alerts, plan, grace);
        plan.expect = resolve::resolve(&expect, plan, grace);
        plan.steady = resolve::resolve(&steady, plan, grace);
        plan.stop_if = resolve::resolve(&stop_if, plan, grace);
        for (name, lines) in pauses {
            let lines = resolve::resolve(&lines, plan, grace);
            if let Some(trigger) = readmission::row_of(plan, &name) {
                let pause = |line| Pause { trigger, line };
                plan.pause_while.extend(lines.into_iter().map(pause));
            }
        }
    }
}
