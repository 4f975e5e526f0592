//! Ids that the target gives to commands, and what hubs tell of them before anybody knows which command each is.
//!
//! A command may reach its hub before the answer that names it has reached the issuer. The hub acts at once; what it tells is kept until
//! the id is known, and told then with its own time.

use crate::event::{CommandId, CommandName, CommandStep, Event, Offset, Sink, id_key};
use crate::plan::Plan;
use crate::plan::routing::hub_of;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long an id is remembered beyond the longest time to live of a command.
const BEYOND: Duration = Duration::from_secs(60);

/// The ids that the target has given in this run.
#[derive(Debug)]
pub struct Given {
    seed: u64,
    /// Of each group of issuers: the group of hubs and how many they are.
    to: Vec<(usize, u32)>,
    kept: Duration,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    rows: VecDeque<Row>,
    /// Number of the first row.
    first: u64,
    /// By [`id_key`].
    numbers: HashMap<String, u64>,
}

/// One id.
struct Row {
    text: String,
    since: Offset,
    command: Option<CommandId>,
    told: Vec<(Hub, Sink, Event)>,
}

/// Group and index of a hub.
type Hub = (u16, u32);

impl std::fmt::Debug for Row {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} = {:?}", self.text, self.command)
    }
}

impl Given {
    /// No id is known yet.
    #[must_use]
    pub fn of(plan: &Plan) -> Given {
        let to = plan.issuers.iter().map(|group| {
            let count = plan.hubs.get(group.to).map_or(0, |hubs| hubs.count);
            (group.to, count)
        });
        let longest = plan.issuers.iter().map(|group| group.ttl).max();
        Given {
            seed: plan.seed,
            to: to.collect(),
            kept: longest.unwrap_or_default() + BEYOND,
            inner: Mutex::default(),
        }
    }

    /// What stands for the command that a hub received under this id.
    pub(super) fn name(&self, text: &str, now: Offset) -> CommandName {
        let mut inner = self.lock();
        self.forget(&mut inner, now);
        CommandName::from(CommandId::given(inner.number(text, now)))
    }

    /// The id as the hub received it.
    pub(super) fn text(&self, name: CommandName) -> Option<String> {
        let mut inner = self.lock();
        inner.row(name.command.number).map(|row| row.text.clone())
    }

    /// The command that has this id, if that is known.
    pub(super) fn command(&self, text: &str) -> Option<CommandId> {
        let mut inner = self.lock();
        let number = *inner.numbers.get(&id_key(text))?;
        inner.row(number)?.command
    }

    /// The target has given this id to the command.
    pub(super) fn give(&self, text: &str, command: CommandId, now: Offset) {
        let mut inner = self.lock();
        self.forget(&mut inner, now);
        let number = inner.number(text, now);
        let Some(row) = inner.row(number) else { return };
        row.command = Some(command);
        for (hub, sink, event) in std::mem::take(&mut row.told) {
            self.pass_on(command, hub, &sink, event);
        }
    }

    /// A hub tells a step of a command that it knows by a given id only: passed on as soon as it is known which command that is.
    pub(super) fn tell(&self, hub: Hub, sink: &Sink, number: u64, event: Event) {
        let mut inner = self.lock();
        let Some(row) = inner.row(number) else { return };
        match row.command {
            Some(command) => self.pass_on(command, hub, sink, event),
            None => row.told.push((hub, Sink::clone(sink), event)),
        }
    }

    /// The run is over: what nobody has named was not ours.
    pub(super) fn close(&self) {
        let mut inner = self.lock();
        inner.numbers.clear();
        inner.rows.drain(..).for_each(Row::disown);
    }

    fn pass_on(&self, command: CommandId, hub: Hub, sink: &Sink, event: Event) {
        let Event::Command { step, at, .. } = event else {
            return;
        };
        let (group, index) = hub;
        let to = self.to.get(usize::from(command.issuer));
        let is_its_own = to.is_some_and(|(to, count)| {
            *to == usize::from(group) && hub_of(self.seed, command, *count) == u64::from(index)
        });
        match (is_its_own, step) {
            (true, step) => sink(Event::Command {
                id: command,
                step,
                at,
            }),
            (false, CommandStep::Delivered) => sink(Event::Foreign { group, at }),
            (false, _) => {}
        }
    }

    fn forget(&self, inner: &mut Inner, now: Offset) {
        while let Some(row) = inner.rows.front()
            && row.since.after(self.kept) < now
        {
            if let Some(row) = inner.rows.pop_front() {
                inner.numbers.remove(&id_key(&row.text));
                inner.first += 1;
                row.disown();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn number(&mut self, text: &str, now: Offset) -> u64 {
        let next = self.first + self.rows.len() as u64;
        let number = *self.numbers.entry(id_key(text)).or_insert(next);
        if number == next {
            self.rows.push_back(Row {
                text: text.to_owned(),
                since: now,
                command: None,
                told: Vec::new(),
            });
        }
        number
    }

    fn row(&mut self, number: u64) -> Option<&mut Row> {
        let place = number.checked_sub(self.first)?;
        self.rows.get_mut(usize::try_from(place).ok()?)
    }
}

impl Row {
    /// Nobody has said whose it is.
    fn disown(self) {
        for ((group, _), sink, event) in self.told {
            if let Event::Command {
                step: CommandStep::Delivered,
                at,
                ..
            } = event
            {
                sink(Event::Foreign { group, at });
            }
        }
    }
}

/// What stands for the id of the command that a hub answers.
pub(super) enum Answering<'a> {
    /// We have given it, in the run of this tag.
    Ours(CommandName, &'a str),
    Theirs(String),
}

impl Answering<'_> {
    /// Appends what `<command>` and `<command.uuid>` stand for; false if `word` is neither.
    pub fn value(&self, word: &str, out: &mut String) -> bool {
        match (self, word) {
            (Answering::Ours(name, run_tag), word) => return name.value(word, run_tag, out),
            (Answering::Theirs(text), "command" | "command.uuid") => out.push_str(text),
            _ => return false,
        }
        true
    }
}
