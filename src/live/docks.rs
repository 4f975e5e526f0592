//! Docks: one small task each, its posts over HTTP, and the inbox through which riders hand over.
//!
//! Decides nothing but how long docks may flush at the end. The end of the run asks the target for the returns in `docks/asking`.

mod asking;
mod board;
mod dock;

use super::hubs::timers::NEVER;
use crate::agents::{DockConfig, Handed, Left, Order};
use crate::dice::Dice;
use crate::event::{AgentKind, Offset, Sink};
use crate::net::clock::Clock;
use crate::net::hosts::Hosts;
use crate::net::http::{Http, NoClient};
use crate::plan::Plan;
use crate::plan::dock::SomeDocks;
use crate::retry::Budget;
use board::Board;
use dock::DockTask;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// Returns of one group that the target is asked for at the end; of more than these, so many are drawn.
const MOST_ASKED: usize = 100_000;
/// How long tasks may take to end once they were told to.
const GOODBYE: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Keeps the draw of returns apart from other draws of the seed: "asks" in ASCII.
const CHOICE_OF_RETURNS: u64 = 0x6173_6b73;

/// Where riders hand over. Without docks nobody takes anything.
#[derive(Clone, Default)]
pub struct Inboxes(Arc<Vec<Vec<flume::Sender<Handed>>>>);

impl Inboxes {
    /// Hands something to dock `dock` of row `docks`.
    pub(super) fn hand(&self, docks: u16, dock: u32, handed: Handed) {
        let inbox = self
            .0
            .get(usize::from(docks))
            .and_then(|group| group.get(dock as usize));
        if let Some(inbox) = inbox {
            // A dock outlives the riders, unless the run is torn down.
            let _ = inbox.send(handed);
        }
    }
}

/// All docks of a run. Dropping it ends them at once and silently.
pub struct DockFleet {
    groups: Vec<Running>,
    inboxes: Inboxes,
    clock: Clock,
}

struct Running {
    group: Arc<Group>,
    board: watch::Sender<Board>,
}

/// What all docks of a group share.
struct Group {
    plan: Arc<Plan>,
    row: usize,
    config: Arc<DockConfig>,
    run_tag: String,
    http: Http,
    clock: Clock,
    sinks: Vec<Sink>,
    budget: Budget,
    stored: AtomicU64,
    left: Mutex<Kept>,
}

/// The returns that the target will be asked for.
struct Kept {
    left: Vec<Left>,
    seen: u64,
    dice: Dice,
}

impl DockFleet {
    /// Starts every dock of the plan. Nothing is sent before [`DockFleet::begin`]; what riders hand over is.
    ///
    /// # Errors
    /// If there is no HTTP client to be had.
    pub fn start(
        plan: &Arc<Plan>,
        hosts: &Arc<Hosts>,
        clock: Clock,
        run_tag: &str,
        sinks: &[Sink],
    ) -> Result<DockFleet, NoClient> {
        let mut groups = Vec::new();
        let mut inboxes = Vec::new();
        for (row, docks) in plan.docks.iter().enumerate() {
            let idle = docks.count as usize;
            let group = Arc::new(Group {
                plan: Arc::clone(plan),
                row,
                config: Arc::new(DockConfig::of(plan, row, run_tag)),
                run_tag: run_tag.to_owned(),
                http: Http::new(Arc::clone(hosts), idle, docks.timeout)?,
                clock,
                sinks: sinks.to_vec(),
                budget: plan.budget(AgentKind::Dock, row),
                stored: AtomicU64::new(0),
                left: Mutex::new(Kept {
                    left: Vec::new(),
                    seen: 0,
                    dice: Dice::named(plan.seed, CHOICE_OF_RETURNS, row as u64),
                }),
            });
            let board = watch::Sender::new(Board::default());
            let mut senders = Vec::new();
            for index in 0..docks.count {
                let (sender, inbox) = flume::unbounded();
                senders.push(sender);
                let task = DockTask::new(Arc::clone(&group), index);
                tokio::spawn(task.run(board.subscribe(), inbox));
            }
            inboxes.push(senders);
            groups.push(Running { group, board });
        }
        Ok(DockFleet {
            groups,
            inboxes: Inboxes(Arc::new(inboxes)),
            clock,
        })
    }

    /// Where riders hand over.
    #[must_use]
    pub fn inboxes(&self) -> Inboxes {
        self.inboxes.clone()
    }

    /// Lets docks refresh their status: `0:00` is at `zero`.
    pub fn begin(&self, zero: Offset) {
        for running in &self.groups {
            running.board.send_modify(|board| board.zero = Some(zero));
        }
    }

    /// Gives `order` to the docks that `some` chooses under `seed`, from now on.
    pub fn order(&self, some: &SomeDocks, order: Order, seed: u64) {
        let Some(running) = self.groups.get(some.docks) else {
            return;
        };
        let mut at = vec![NEVER; running.group.plan.docks[some.docks].count as usize];
        let now = self.clock.now();
        for (index, after) in some.chosen(seed, running.group.plan.docks[some.docks].count) {
            at[index as usize] = now.after(after);
        }
        running.board.send_modify(|board| board.add(order, at));
    }

    /// Returns that docks hold now.
    #[must_use]
    pub fn stored(&self) -> u64 {
        self.groups
            .iter()
            .map(|running| running.group.stored.load(Ordering::Relaxed))
            .sum()
    }

    /// Lets docks get rid of what they hold until `deadline`, then ends them; what they still hold is told as unfinished.
    pub async fn stop(self, deadline: Offset) -> Asking {
        while self.stored() > 0 && self.clock.now() < deadline {
            sleep(LOOK_EVERY).await;
        }
        for running in &self.groups {
            running.board.send_modify(|board| board.stops = true);
        }
        let end = self.clock.now().after(GOODBYE);
        let left = || {
            let tasks = self.groups.iter();
            tasks
                .map(|running| running.board.receiver_count())
                .sum::<usize>()
        };
        while left() > 0 && self.clock.now() < end {
            sleep(LOOK_EVERY).await;
        }
        let groups = self.groups.into_iter();
        Asking {
            groups: groups.map(|running| running.group).collect(),
        }
    }
}

/// The returns of a run whose docks have ended.
pub struct Asking {
    groups: Vec<Arc<Group>>,
}

impl Asking {
    /// Asks the target what became of the returns, until it has said of each that it is booked and its trip over, or the time that the target file
    /// gives it has passed; tells what it said.
    pub async fn ask(self) {
        for group in &self.groups {
            asking::ask(group).await;
        }
    }
}

impl Group {
    fn sink(&self, index: u32) -> Option<&Sink> {
        self.sinks.get(index as usize % self.sinks.len().max(1))
    }

    /// Keeps a return to ask for, if its kind can be asked for: a draw without replacement where there are too many.
    fn keep(&self, left: Left) {
        let device = &self.plan.target.docks[self.plan.docks[self.row].device];
        let sent = device.sends.get(usize::from(left.handed.sends));
        if sent.is_none_or(|sent| sent.reconcile.is_none()) {
            return;
        }
        let mut kept = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        kept.seen += 1;
        if kept.left.len() < MOST_ASKED {
            kept.left.push(left);
            return;
        }
        let seen = kept.seen;
        let place = usize::try_from(kept.dice.below(seen)).unwrap_or(usize::MAX);
        if let Some(row) = kept.left.get_mut(place) {
            *row = left;
        }
    }
}
