//! Holds one agent's events to what `Event` promises.

use rushhour::event::{Event, Offset, OperationId, Outcome};

/// The intended actions of one agent that are under way.
#[derive(Debug, Default)]
pub struct Account {
    open: Vec<Open>,
    pub started: usize,
    pub finished: usize,
    pub unfinished: usize,
}

#[derive(Debug)]
struct Open {
    operation: OperationId,
    due: Offset,
    started: Offset,
    attempts: u32,
    under_way: Option<Offset>,
}

impl Account {
    /// Takes the next event.
    ///
    /// # Panics
    /// If it breaks a promise: an answer without an attempt, an end without a start, a wrong count, a time that runs backwards.
    pub fn take(&mut self, event: &Event) {
        match event {
            Event::Started { operation, due, at } => {
                assert!(due <= at, "started before it was due: {event:?}");
                self.started += 1;
                let (operation, due, started) = (*operation, *due, *at);
                self.open.push(Open {
                    operation,
                    due,
                    started,
                    attempts: 0,
                    under_way: None,
                });
            }
            Event::Attempted { operation, at } | Event::Continued { operation, at } => {
                let open = self.find(event, |open| {
                    open.operation == *operation && open.under_way.is_none() && open.started <= *at
                });
                open.attempts += 1;
                open.under_way = Some(*at);
            }
            Event::Answered {
                operation,
                sent,
                at,
                ..
            } => {
                assert!(sent <= at, "answered before it was sent: {event:?}");
                let open = self.find(event, |open| {
                    open.operation == *operation && open.under_way == Some(*sent)
                });
                open.under_way = None;
            }
            Event::Finished {
                operation,
                due,
                started,
                attempts,
                outcome,
                ..
            } => {
                let open = self.remove(event, *operation, *due, *started);
                // A journey counts the requests of its steps, and has no attempts of its own.
                assert!(
                    open.attempts == *attempts || open.attempts == 0,
                    "{event:?} {open:?}"
                );
                assert!(*outcome != Outcome::Ok || *attempts > 0, "{event:?}");
                self.finished += 1;
            }
            Event::Unfinished { operation, due, .. } => {
                let row = self.row(event, |open| {
                    open.operation == *operation && open.due == *due
                });
                self.open.remove(row);
                self.unfinished += 1;
            }
            _ => {}
        }
        assert_eq!(
            self.started,
            self.finished + self.unfinished + self.open.len()
        );
    }

    /// How many actions are under way.
    pub fn under_way(&self) -> usize {
        self.open.len()
    }

    fn remove(
        &mut self,
        event: &Event,
        operation: OperationId,
        due: Offset,
        started: Offset,
    ) -> Open {
        let like = |open: &Open| open.operation == operation && open.started == started;
        let row = self.row(event, |open| like(open) && open.due == due);
        // Of two publishes in the same microsecond the answer may have been booked on the other.
        if let Some(sent) = self.open[row].under_way {
            self.find(event, |open| like(open) && open.under_way.is_none())
                .under_way = Some(sent);
        }
        self.open.remove(row)
    }

    fn row(&self, event: &Event, fits: impl Fn(&Open) -> bool) -> usize {
        let row = self.open.iter().position(fits);
        row.unwrap_or_else(|| panic!("{event:?} belongs to nothing of {:?}", self.open))
    }

    fn find(&mut self, event: &Event, fits: impl Fn(&Open) -> bool) -> &mut Open {
        let row = self.row(event, fits);
        &mut self.open[row]
    }
}
