//! What faults and operations of a run need: state directory, journal, links.

use super::Stopped;
use super::folder::Folder;
use crate::chaos::bulletin::Bulletin;
use crate::chaos::claims;
use crate::chaos::dry_run::{Found, Look};
use crate::chaos::faults::{Faults, Setup};
use crate::chaos::heal::Remaining;
use crate::chaos::journal::{self, Entry, Journal};
use crate::chaos::links::Links;
use crate::chaos::process::Identity;
use crate::chaos::undo::BUDGET;
use crate::chaos::watchdog::Watchdog;
use crate::event::{Offset, Sink};
use crate::net::clock::Clock;
use crate::net::hosts::Hosts;
use crate::net::state::StateDirectory;
use crate::plan::Plan;
use crate::plan::fault::TriggerKind;
use std::path::PathBuf;
use std::sync::Arc;

/// Ready to break things, and to undo it.
pub(super) struct ChaosParts {
    /// `<lab.…>` are text, `<secret.…>` are still placeholders: undos are written to the journal.
    plan: Arc<Plan>,
    program: PathBuf,
    state: StateDirectory,
    journal: Arc<Journal>,
    watchdog: Watchdog,
    links: Arc<Links>,
    lab: Option<Identity>,
}

impl ChaosParts {
    /// Refuses a run over what a dead run left behind, then brings up the links. `None` for a plan that breaks nothing, asks for
    /// no operation and has no link.
    ///
    /// # Errors
    /// If something is unhealed, the state directory can't be used, or a link does not come up.
    pub async fn start(
        plan: Plan,
        folder: &Folder,
        lab: Option<u32>,
        hosts: &Hosts,
    ) -> Result<Option<ChaosParts>, Stopped> {
        let operates = |kind: &TriggerKind| matches!(kind, TriggerKind::Operate { .. });
        let needed = !plan.faults.is_empty()
            || !plan.target.links.is_empty()
            || plan.triggers.iter().any(|trigger| operates(&trigger.kind));
        if !needed {
            return Ok(None);
        }
        let program = std::env::current_exe().map_err(Stopped::internal)?;
        let lab = lab
            .and_then(|pid| i32::try_from(pid).ok())
            .map(Identity::of)
            .transpose()
            .map_err(Stopped::internal)?;
        let state = StateDirectory::of_user().map_err(Stopped::refused)?;
        let journal = Journal::create(&state, folder.id()).map_err(Stopped::refused)?;
        refuse_contested(&plan, &state, &journal)?;
        let watchdog = Watchdog::start(&program, &state, folder.id()).map_err(Stopped::internal)?;
        let links = Links::start(&plan.target, &program, &state, folder.id())
            .await
            .map_err(Stopped::refused)?;
        for adopted in links.adopted() {
            eprintln!("{adopted}");
        }
        let detours = links.detours(&plan.target).map_err(Stopped::refused)?;
        hosts.lead(detours);
        Ok(Some(ChaosParts {
            plan: Arc::new(plan),
            program,
            state,
            journal: Arc::new(journal),
            watchdog,
            links: Arc::new(links),
            lab,
        }))
    }

    /// Starts every fault and operation at its time.
    ///
    /// # Errors
    /// If the watchdog can't be started.
    pub fn begin(
        &self,
        clock: Clock,
        zero: Offset,
        sink: &Sink,
        bulletin: Bulletin,
    ) -> Result<Faults, Stopped> {
        let setup = Setup {
            plan: Arc::clone(&self.plan),
            clock,
            zero,
            links: Arc::clone(&self.links),
            lab: self.lab.clone(),
            journal: Arc::clone(&self.journal),
            state: self.state.clone(),
            program: self.program.clone(),
            sink: Arc::clone(sink),
            bulletin,
            undo_budget: BUDGET,
        };
        Faults::start(setup).map_err(Stopped::internal)
    }

    /// What the links carried and what faults did to them, for the report.
    pub async fn links_told(&self) -> Vec<String> {
        self.links.told(self.journal.run_id()).await
    }

    /// Copies the journal into the run's folder and ends the links that this run started.
    ///
    /// # Errors
    /// If a link's proxy does not end.
    pub async fn close(self, folder: &Folder) -> Result<(), String> {
        let copied = std::fs::copy(self.journal.path(), folder.path().join("journal.jsonl"));
        self.end_links().await?;
        copied
            .map(|_| ())
            .map_err(|error| format!("the journal was not copied: {error}"))
    }

    /// Ends the links that this run started, and then the watchdog: nothing is left for it.
    ///
    /// # Errors
    /// If a link's proxy does not end.
    pub async fn end_links(self) -> Result<(), String> {
        let ended = Self::stop_links(self.links).await;
        if let Err(error) = self.watchdog.dismiss() {
            eprintln!("the watchdog has died before the run's end: {error}");
        }
        ended
    }

    async fn stop_links(links: Arc<Links>) -> Result<(), String> {
        // Whoever still holds the links holds them until the process ends, and then they go on as after a kill.
        let links =
            Arc::try_unwrap(links).map_err(|_| "a fault still holds the links".to_owned())?;
        links.stop().await.map_err(|error| error.to_string())
    }
}

/// Refuses a run that would break what a live one breaks.
fn refuse_contested(plan: &Plan, state: &StateDirectory, journal: &Journal) -> Result<(), Stopped> {
    let claims = claims::of(plan);
    let written = journal.append(Entry::Claims {
        what: claims.clone(),
    });
    written.map_err(Stopped::refused)?;
    match journal::contested(state, journal.run_id(), &claims) {
        Ok(None) => Ok(()),
        Ok(Some(text)) => Err(Stopped::Refused(format!("error: {text}"))),
        Err(error) => Err(Stopped::refused(error)),
    }
}

/// What `check` says of the faults, and an error for each that could not be injected as things are.
pub(super) fn looks_text(looks: &[Look]) -> (String, Vec<String>) {
    let mut text = "\nWhat the faults would touch now\n".to_owned();
    let mut unresolved = Vec::new();
    for Look { fault, found } in looks {
        match found {
            Found::Now { touches, undo } => {
                text.push_str(&format!(
                    "  {fault:<22} {touches}\n  {:<22} undo: {undo}\n",
                    ""
                ));
            }
            Found::InTheLab => {
                text.push_str(&format!(
                    "  {fault:<22} part of the lab, known once it runs\n"
                ));
            }
            Found::Nothing { why } => {
                text.push_str(&format!("  {fault:<22} not found\n"));
                unresolved.push(format!(
                    "error: the fault `{fault}` could not be injected now: {why}"
                ));
            }
        }
    }
    (text, unresolved)
}

/// Refuses to start over what dead runs left behind.
///
/// # Errors
/// If there is something, with how to undo it.
pub(super) fn refuse_unhealed() -> Result<(), Stopped> {
    // Without a state directory no run of this user can have left anything there.
    let Ok(state) = StateDirectory::of_user() else {
        return Ok(());
    };
    match journal::unhealed(&state) {
        Ok(None) => Ok(()),
        Ok(Some(text)) => Err(Stopped::Refused(text)),
        Err(error) => Err(Stopped::refused(error)),
    }
}

/// One line for each fault that could not be undone.
pub(super) fn remaining_text(remaining: &[Remaining]) -> Vec<String> {
    remaining
        .iter()
        .map(|one| format!("fault `{}` was not undone: {}", one.fault, one.why))
        .collect()
}
