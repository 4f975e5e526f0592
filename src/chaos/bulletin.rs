//! How far triggers and faults are, told while the run goes on to faults that wait for one of them.
//!
//! Whether the target has recovered is decided by whoever measures, and told here.

use crate::event::{Event, Mark, MarkId, MarkPhase, Offset, Sink};
use crate::plan::fault::{After, Edge};
use std::sync::Arc;
use tokio::sync::watch;

/// What is known of every mark by now; its copies are the same one.
#[derive(Debug, Clone)]
pub struct Bulletin(Arc<watch::Sender<Vec<Standing>>>);

#[derive(Debug, Clone, Default, PartialEq)]
struct Standing {
    begin: Option<Offset>,
    end: Option<Offset>,
    failed: Option<String>,
    /// Since when, or why that will never be known.
    recovered: Option<Result<Offset, String>>,
}

impl Bulletin {
    /// Nothing has happened to so many marks yet.
    #[must_use]
    pub fn new(marks: usize) -> Bulletin {
        Bulletin(Arc::new(watch::Sender::new(vec![
            Standing::default();
            marks
        ])))
    }

    /// The sink, with every mark that it is told read on the way.
    #[must_use]
    pub fn tap(&self, sink: &Sink) -> Sink {
        let (bulletin, sink) = (self.clone(), Arc::clone(sink));
        Arc::new(move |event| {
            if let Event::Mark(mark) = &event {
                bulletin.hear(mark);
            }
            sink(event);
        })
    }

    /// The target is known to have recovered from a mark, or it is known that nobody will ever know.
    pub fn tell_recovery(&self, mark: MarkId, recovered: Result<Offset, String>) {
        self.change(mark, |standing| {
            if standing.recovered.is_none() {
                standing.recovered = Some(recovered);
            }
        });
    }

    fn hear(&self, mark: &Mark) {
        self.change(mark.id, |standing| match &mark.phase {
            MarkPhase::Begin => standing.begin = standing.begin.or(Some(mark.at)),
            MarkPhase::End => standing.end = standing.end.or(Some(mark.at)),
            MarkPhase::Failed(why) => standing.failed = Some(why.clone()),
            MarkPhase::Observed(_)
            | MarkPhase::NotObserved(_)
            | MarkPhase::Admitted(_)
            | MarkPhase::Paused(_)
            | MarkPhase::Resumed => {}
        });
    }

    fn change(&self, mark: MarkId, change: impl FnOnce(&mut Standing)) {
        self.0.send_if_modified(|standings| {
            let Some(standing) = standings.get_mut(usize::from(mark.0)) else {
                return false;
            };
            let before = standing.clone();
            change(standing);
            *standing != before
        });
    }

    /// Waits for the moment that `after` counts from.
    ///
    /// # Errors
    /// Why it will never come; `name` is the mark's.
    pub(super) async fn moment(&self, after: After, name: &str) -> Result<Offset, String> {
        let mut told = self.0.subscribe();
        let row = usize::from(after.mark.0);
        let decided =
            told.wait_for(|all| all.get(row).is_none_or(|one| one.at(after.edge).is_some()));
        let standing = match decided.await {
            Ok(all) => all.get(row).cloned(),
            // Unreachable while `self` holds the sender.
            Err(_) => None,
        };
        match standing.and_then(|standing| standing.at(after.edge)) {
            Some(Ok(moment)) => Ok(moment),
            Some(Err(why)) => Err(format!("{name} {why}")),
            None => Err(format!("nothing is known of {name}")),
        }
    }
}

impl Standing {
    /// When it was there, or why it never will be; `None` as long as that is open.
    fn at(&self, edge: Edge) -> Option<Result<Offset, String>> {
        let moment = match edge {
            Edge::Begin => self.begin.map(Ok),
            Edge::End => self.end.map(Ok),
            Edge::Recovery => self.recovered.clone().map(|recovered| {
                recovered.map_err(|why| format!("is not known to have recovered: {why}"))
            }),
        };
        let failed = || {
            let why = self.failed.as_ref()?;
            Some(Err(format!("failed: {why}")))
        };
        moment.or_else(failed)
    }
}
