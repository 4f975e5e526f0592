//! `rushhour heal`: undoes from the journal alone whatever a dead run left behind. Doing it again changes nothing.

use super::journal::{Entry, Journal, JournalError, Left, Unhealed, look, now_ms};
use super::links::ended;
use super::proxy::client::{ClientError, ProxyClient, running};
use super::undo::{BUDGET, Step};
use crate::net::state::{StateDirectory, StateError};
use std::io;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::Instant;

/// How long a dead run's proxy is watched until nothing needs it, and how often it is looked at.
const PROXY_PATIENCE: Duration = Duration::from_secs(30);
const PROXY_REST: Duration = Duration::from_millis(100);

/// Arguments of `rushhour heal`.
#[derive(Debug, Clone, clap::Args)]
#[group(required = true, multiple = false)]
pub struct HealArguments {
    /// Undo what this run left behind
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,
    /// Undo what every dead run left behind
    #[arg(long)]
    pub all: bool,
}

/// A fault that could not be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remaining {
    pub fault: String,
    pub why: String,
}

/// Why healing could not start.
#[derive(Debug, thiserror::Error)]
enum HealError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// How healing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Healing {
    /// Nothing is left of any fault.
    Done,
    /// Something is, or may be.
    Remains,
    /// There is no such run, or no state directory that could be looked at.
    Refused,
}

/// Heals and tells what it did.
#[must_use]
pub fn run(arguments: &HealArguments) -> Healing {
    match heal(arguments) {
        Ok(true) => Healing::Done,
        Ok(false) => Healing::Remains,
        Err(error) => {
            eprintln!("rushhour heal: {error}");
            // Nothing that was broken is known of where nothing could be looked at.
            let is_refused = matches!(
                error,
                HealError::State(_)
                    | HealError::Journal(
                        JournalError::NoSuchRun { .. }
                            | JournalError::State(StateError::BadRunId(_))
                    )
            );
            if is_refused {
                Healing::Refused
            } else {
                Healing::Remains
            }
        }
    }
}

fn heal(arguments: &HealArguments) -> Result<bool, HealError> {
    let state = StateDirectory::of_user()?;
    runtime()?.block_on(async {
        let (runs, problems) = runs(arguments, &state)?;
        let mut healed = problems.is_empty();
        let mut found = !healed;
        for (run_id, problem) in problems {
            println!("run {run_id}: NOT HEALED: {problem}");
        }
        for run_id in runs {
            let journal = Journal::take_over(&state, &run_id)?;
            let left = journal.left()?;
            found |= !left.is_nothing();
            healed &= heal_run(&journal, &left, &state).await;
        }
        if !found {
            println!("nothing to heal");
        }
        for left in end_idle_proxies(arguments.run.as_deref(), &state).await? {
            println!("{left}");
        }
        Ok(healed)
    })
}

/// The dead runs that left something; and those whose journals can't be read, each with why: they keep nobody from healing the others.
type DeadRuns = (Vec<String>, Vec<(String, JournalError)>);

fn runs(arguments: &HealArguments, state: &StateDirectory) -> Result<DeadRuns, HealError> {
    if let Some(run_id) = &arguments.run {
        return Ok((vec![run_id.clone()], Vec::new()));
    }
    let (mut dead, mut problems) = (Vec::new(), Vec::new());
    for run_id in state.run_ids()? {
        match look(state, &run_id) {
            Ok(left) if left.is_nothing() => {}
            Ok(left) if left.is_alive => {
                println!("run {run_id} is still going and undoes its faults itself");
            }
            Ok(_) => dead.push(run_id),
            Err(problem) => problems.push((run_id, problem)),
        }
    }
    Ok((dead, problems))
}

/// Undoes what a run left, telling each step; false if something remains.
async fn heal_run(journal: &Journal, left: &Left, state: &StateDirectory) -> bool {
    let run_id = journal.run_id();
    for fault in &left.faults {
        println!(
            "run {run_id}, fault {}{}: {}",
            fault.fault,
            overdue(fault),
            fault.undo
        );
    }
    for line in &left.unreadable {
        println!(
            "run {run_id}: the journal holds a line that can't be read, so what it armed is not known: {line}"
        );
    }
    let remaining = undo_left(journal, left, state, BUDGET, &|fault, step| match step {
        Step::Undone(how) => println!("run {run_id}, fault {fault}: undone: {how}"),
        Step::Verified(how) => println!("run {run_id}, fault {fault}: healed: {how}"),
    })
    .await;
    for Remaining { fault, why } in &remaining {
        println!("run {run_id}, fault {fault}: NOT HEALED: {why}");
    }
    let healed = remaining.is_empty() && left.unreadable.is_empty();
    if !healed {
        let directory = journal.path().parent().unwrap_or(journal.path()).display();
        println!("try again when the target answers; if it is gone for good, remove {directory}");
    }
    healed
}

/// Undoes everything that the journal does not know as undone, and records it there; gives what remains. All at the same time: one that
/// hangs must not hold up another.
pub(super) async fn undo_left(
    journal: &Journal,
    left: &Left,
    state: &StateDirectory,
    budget: Duration,
    tell: &(dyn Fn(&str, &Step) + Sync),
) -> Vec<Remaining> {
    let undoing = left
        .faults
        .iter()
        .map(|Unhealed { fault, undo, .. }| async move {
            let mut record = |step: Step| {
                tell(fault, &step);
                record_step(journal, fault, step);
            };
            let why = undo.carry_out(state, budget, &mut record).await.err()?;
            record_failure(journal, fault, &why);
            Some(Remaining {
                fault: fault.clone(),
                why,
            })
        });
    let remaining = futures::future::join_all(undoing).await;
    remaining.into_iter().flatten().collect()
}

/// Writes a step of undoing down. If that fails the fault is healed all the same, and will be looked at again.
pub(super) fn record_step(journal: &Journal, fault: &str, step: Step) {
    let fault = fault.to_owned();
    let entry = match step {
        Step::Undone(how) => Entry::Undone { fault, how },
        Step::Verified(how) => Entry::Verified { fault, how },
    };
    complain(journal.append(entry));
}

pub(super) fn record_failure(journal: &Journal, fault: &str, why: &str) {
    complain(journal.append(Entry::UndoFailed {
        fault: fault.to_owned(),
        why: why.to_owned(),
    }));
}

fn complain(written: Result<(), JournalError>) {
    if let Err(error) = written {
        eprintln!("the journal can't be written: {error}");
    }
}

fn overdue(fault: &Unhealed) -> String {
    match fault
        .ends_at_ms
        .map(|end| now_ms().saturating_sub(end) / 1000)
    {
        Some(seconds) if seconds > 0 => format!(" (should have ended {seconds} s ago)"),
        _ => String::new(),
    }
}

/// Ends the proxies of dead runs that carry nothing, of all or of one; gives a sentence for each that is left, because the target's
/// connections depend on it.
async fn end_idle_proxies(
    of_run: Option<&str>,
    state: &StateDirectory,
) -> Result<Vec<String>, HealError> {
    let mut left = Vec::new();
    for registration in running(state)? {
        let Some(run_id) = registration.run.clone() else {
            continue;
        };
        let meant = of_run.is_none_or(|of_run| of_run == run_id);
        // Whoever can take the journal over knows that the run is dead.
        if !meant
            || matches!(
                Journal::take_over(state, &run_id),
                Err(JournalError::RunIsAlive(_))
            )
        {
            continue;
        }
        let pid = registration.process.pid;
        let proxy = ProxyClient::new(registration)?;
        let open: u64 = proxy.links().await?.iter().map(|link| link.open).sum();
        if open > 0 {
            left.push(format!(
                "fault proxy {pid} of run {run_id} is left running: it carries {open} connections of the target; to end it: kill {pid}"
            ));
            continue;
        }
        proxy.stop().await?;
        ended(&proxy).await?;
        println!("ended fault proxy {pid} of run {run_id}, which carried nothing");
    }
    Ok(left)
}

/// Heals after a run that has just died, and ends its proxies as soon as nothing needs them any more.
#[must_use]
pub fn run_after_death(run_id: &str) -> Healing {
    let arguments = HealArguments {
        run: Some(run_id.to_owned()),
        all: false,
    };
    let healing = run(&arguments);
    if healing != Healing::Refused
        && let Err(error) = see_proxies_off(run_id)
    {
        eprintln!("rushhour heal: {error}");
    }
    healing
}

/// Agents and lab of the dead run let go of their connections within moments; those of a target that lives on may never.
fn see_proxies_off(run_id: &str) -> Result<(), HealError> {
    let state = StateDirectory::of_user()?;
    runtime()?.block_on(async {
        let end = Instant::now() + PROXY_PATIENCE;
        while !end_idle_proxies(Some(run_id), &state).await?.is_empty() && Instant::now() < end {
            tokio::time::sleep(PROXY_REST).await;
        }
        Ok(())
    })
}

fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}
