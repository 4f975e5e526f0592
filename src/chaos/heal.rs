//! `rushhour heal`: undoes from the journal alone whatever a dead run left behind. Doing it again changes nothing.

use super::journal::{Entry, Journal, JournalError, Left, Unhealed, now_ms, open_all};
use super::links::ended;
use super::proxy::client::{ClientError, ProxyClient, running};
use super::undo::{BUDGET, Step};
use crate::net::state::{StateDirectory, StateError};
use std::io;
use std::time::Duration;

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
    /// There is no such run.
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
            let unknown = matches!(
                error,
                HealError::Journal(
                    JournalError::NoSuchRun { .. } | JournalError::State(StateError::BadRunId(_))
                )
            );
            if unknown {
                Healing::Refused
            } else {
                Healing::Remains
            }
        }
    }
}

fn heal(arguments: &HealArguments) -> Result<bool, HealError> {
    let state = StateDirectory::of_user()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut healed = true;
        let mut found = false;
        for run_id in runs(arguments, &state)? {
            let journal = Journal::take_over(&state, &run_id)?;
            let left = journal.left()?;
            found |= !left.faults.is_empty() || !left.unreadable.is_empty();
            healed &= heal_run(&journal, &left, &state).await;
        }
        if !found {
            println!("nothing to heal");
        }
        end_idle_proxies(arguments, &state).await?;
        Ok(healed)
    })
}

fn runs(arguments: &HealArguments, state: &StateDirectory) -> Result<Vec<String>, HealError> {
    if let Some(run_id) = &arguments.run {
        return Ok(vec![run_id.clone()]);
    }
    let (alive, dead): (Vec<Left>, Vec<Left>) =
        open_all(state)?.into_iter().partition(|left| left.is_alive);
    for left in alive {
        println!(
            "run {} is still going and undoes its faults itself",
            left.run_id
        );
    }
    Ok(dead.into_iter().map(|left| left.run_id).collect())
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
    let remaining = undo_left(
        journal,
        left,
        state,
        BUDGET,
        &mut |fault, step| match step {
            Step::Undone(how) => println!("run {run_id}, fault {fault}: undone: {how}"),
            Step::Verified(how) => println!("run {run_id}, fault {fault}: healed: {how}"),
        },
    )
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

/// Undoes everything that the journal does not know as undone, and records it there; gives what remains.
pub(super) async fn undo_left(
    journal: &Journal,
    left: &Left,
    state: &StateDirectory,
    budget: Duration,
    tell: &mut (dyn FnMut(&str, &Step) + Send),
) -> Vec<Remaining> {
    let mut remaining = Vec::new();
    for Unhealed { fault, undo, .. } in &left.faults {
        let mut record = |step: Step| {
            tell(fault, &step);
            record_step(journal, fault, step);
        };
        if let Err(why) = undo.carry_out(state, budget, &mut record).await {
            record_failure(journal, fault, &why);
            remaining.push(Remaining {
                fault: fault.clone(),
                why,
            });
        }
    }
    remaining
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

/// Ends the proxies of dead runs that carry nothing. One that carries connections is left: the target depends on it.
async fn end_idle_proxies(
    arguments: &HealArguments,
    state: &StateDirectory,
) -> Result<(), HealError> {
    for registration in running(state)? {
        let Some(run_id) = registration.run.clone() else {
            continue;
        };
        let meant = arguments.all || arguments.run.as_ref() == Some(&run_id);
        // Whoever can take the journal over knows that the run is dead.
        if !meant
            || matches!(
                Journal::take_over(state, &run_id),
                Err(JournalError::RunIsAlive(_))
            )
        {
            continue;
        }
        let proxy = ProxyClient::new(registration)?;
        let pid = proxy.registration().process.pid;
        let open: u64 = proxy.links().await?.iter().map(|link| link.open).sum();
        if open > 0 {
            println!(
                "fault proxy {pid} of run {run_id} is left running: it carries {open} connections of the target; to end it: kill {pid}"
            );
            continue;
        }
        proxy.stop().await?;
        ended(&proxy).await?;
        println!("ended fault proxy {pid} of run {run_id}, which carried nothing");
    }
    Ok(())
}
