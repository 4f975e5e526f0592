//! One dock over real HTTP: its inbox, its orders, its timers, and the posts under way.

use super::Group;
use super::board::Board;
use crate::agents::{Action, Agent, Context, Dock, Handed, Input, Order, Post, Reply, Timer};
use crate::dice::Dice;
use crate::event::{AgentId, AgentKind};
use crate::live::explain::tell;
use crate::live::hubs::timers::{NEVER, Timers};
use crate::live::ticket::Answered;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

/// A dock and what it has under way.
pub(super) struct DockTask {
    group: Arc<Group>,
    index: u32,
    dock: Dock,
    dice: Dice,
    timers: Timers,
    posts: JoinSet<(u64, Answered)>,
    aborts: HashMap<u64, AbortHandle>,
    /// Orders that it has followed.
    read: usize,
    begun: bool,
    done: bool,
}

impl DockTask {
    pub(super) fn new(group: Arc<Group>, index: u32) -> DockTask {
        let id = AgentId {
            kind: AgentKind::Dock,
            group: u16::try_from(group.row).unwrap_or(u16::MAX),
            index: u64::from(index),
        };
        DockTask {
            dock: Dock::new(&group.config, index),
            dice: Dice::of(group.plan.seed, id),
            timers: Timers::none(),
            posts: JoinSet::new(),
            aborts: HashMap::new(),
            read: 0,
            begun: false,
            done: false,
            group,
            index,
        }
    }

    /// Until the board says that the run is over, or is gone.
    pub(super) async fn run(
        mut self,
        mut board: watch::Receiver<Board>,
        inbox: flume::Receiver<Handed>,
    ) {
        while !self.done {
            let next = self.follow(&mut board);
            if self.done {
                return;
            }
            let clock = self.group.clock;
            tokio::select! {
                changed = board.changed() => if changed.is_err() { return },
                Ok(handed) = inbox.recv_async() => self.decide(Input::Handed(handed)),
                Some(ended) = self.posts.join_next() => self.answered(ended),
                () = tokio::time::sleep_until(clock.instant(next)), if next != NEVER => {
                    while let Some(timer) = self.timers.take(clock.now()) {
                        self.timer(timer);
                    }
                }
            }
        }
    }

    /// Follows what is ordered by now, and answers when there is something to do next.
    fn follow(&mut self, board: &mut watch::Receiver<Board>) -> crate::event::Offset {
        loop {
            let (zero, stops, order) = {
                let board = board.borrow_and_update();
                (
                    board.zero,
                    board.stops,
                    board.next(self.index, &mut self.read),
                )
            };
            if stops {
                self.decide(Input::Told(Order::Stop));
                return NEVER;
            }
            if let (Some(zero), false) = (zero, self.begun) {
                self.begun = true;
                self.decide(Input::Due { due: zero });
            }
            let now = self.group.clock.now();
            match order {
                Some((at, order)) if at <= now => {
                    self.read += 1;
                    self.decide(Input::Told(order));
                }
                Some((at, _)) => return at.min(self.timers.next()),
                None => return self.timers.next(),
            }
        }
    }

    fn timer(&mut self, timer: Timer) {
        self.decide(Input::Timer(timer));
    }

    fn answered(&mut self, ended: Result<(u64, Answered), tokio::task::JoinError>) {
        // One that was abandoned has nothing to tell.
        let Ok((token, answered)) = ended else { return };
        self.aborts.remove(&token);
        let reply = Reply {
            result: answered.result,
            body: &answered.body,
            retry_after: answered.retry_after,
        };
        self.decide_knowing(Input::Answered { token, reply }, answered.why.as_deref());
    }

    fn decide(&mut self, input: Input<'_>) {
        self.decide_knowing(input, None);
    }

    /// Lets the dock decide; `why` says what exactly was wrong with what it was answered.
    fn decide_knowing(&mut self, input: Input<'_>, why: Option<&str>) {
        let mut actions = Vec::new();
        let before = self.dock.stored() as u64;
        let mut context = Context {
            dice: &mut self.dice,
            budget: &self.group.budget,
        };
        self.dock
            .on(self.group.clock.now(), input, &mut context, &mut actions);
        for action in actions {
            self.perform(action, why);
        }
        let stored = &self.group.stored;
        stored.fetch_add(self.dock.stored() as u64, Ordering::Relaxed);
        stored.fetch_sub(before, Ordering::Relaxed);
    }

    fn perform(&mut self, action: Action, why: Option<&str>) {
        match action {
            Action::Post {
                token,
                post,
                timeout,
            } => self.post(token, post, timeout),
            Action::Abandon { token } => {
                if let Some(abort) = self.aborts.remove(&token) {
                    abort.abort();
                }
            }
            Action::WakeAt(timer, at) => self.timers.wake_at(timer, at),
            Action::Cancel(timer) => self.timers.cancel(timer),
            Action::Left(left) => self.group.keep(left),
            Action::Tell(event) => {
                if let Some(sink) = self.group.sink(self.index) {
                    tell(sink, event, why);
                }
            }
            Action::Done => self.done = true,
            // The rest is what hubs and riders do.
            _ => {}
        }
    }

    fn post(&mut self, token: u64, post: Post, timeout: Duration) {
        let dock = &self.dock;
        let sent = dock.request(post).map(|request| {
            let mut value = |name: &str, out: &mut String| dock.value(post, name, out);
            self.group.http.perform(request, &mut value, timeout)
        });
        let abort = self.posts.spawn(async move {
            let answered = match sent {
                Some(sent) => sent.await.into(),
                None => Answered::not_sent(),
            };
            (token, answered)
        });
        self.aborts.insert(token, abort);
    }
}
