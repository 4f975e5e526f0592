//! At the end of the run the target is asked for each return: how often it was booked, and whether its trip is over.

use super::Group;
use crate::agents::Left;
use crate::event::{Event, ReturnStep};
use crate::plan::dock::{Booked, Reconcile};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// Questions under way at the same time: the target is not to be loaded by them.
const AT_ONCE: usize = 32;
/// Between two rounds for those that are not yet as they should be.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// One return and what is known of it.
struct Case {
    left: Left,
    first: Option<Booked>,
    last: Option<Booked>,
}

impl Case {
    /// Nothing is to be expected of another question.
    fn is_closed(&self) -> bool {
        self.last
            .is_some_and(|booked| !booked.is_active && booked.times.is_none_or(|times| times > 0))
    }

    fn step(&self) -> ReturnStep {
        match (self.first, self.last) {
            (Some(first), Some(last)) => ReturnStep::Asked {
                was: self.left.state,
                now: last.state(self.left.state),
                active_first: first.is_active,
                active: last.is_active,
            },
            _ => ReturnStep::Unanswered,
        }
    }
}

/// Asks for every return that was kept, and tells what the target said.
pub(super) async fn ask(group: &Arc<Group>) {
    let left = {
        let mut kept = group.left.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut kept.left)
    };
    let mut cases: Vec<Case> = left
        .into_iter()
        .map(|left| Case {
            left,
            first: None,
            last: None,
        })
        .collect();
    let began = Instant::now();
    loop {
        ask_open(group, &mut cases).await;
        let within = |case: &Case| {
            reconcile(group, &case.left).is_some_and(|reconcile| began.elapsed() < reconcile.within)
        };
        if !cases.iter().any(|case| !case.is_closed() && within(case)) {
            break;
        }
        sleep(AGAIN_AFTER).await;
    }
    let at = group.clock.now();
    for (case, sink) in cases.iter().zip(group.sinks.iter().cycle()) {
        sink(Event::Return {
            docks: u16::try_from(group.row).unwrap_or(u16::MAX),
            id: case.left.handed.id,
            created: case.left.created,
            step: case.step(),
            at,
        });
    }
}

/// One round over the cases that are still open.
async fn ask_open(group: &Arc<Group>, cases: &mut [Case]) {
    let mut questions: JoinSet<(usize, Option<Booked>)> = JoinSet::new();
    let open: Vec<usize> = (0..cases.len())
        .filter(|row| !cases[*row].is_closed())
        .collect();
    let mut open = open.into_iter();
    loop {
        while questions.len() < AT_ONCE
            && let Some(row) = open.next()
        {
            questions.spawn(question(group, row, &cases[row].left));
        }
        let Some(answered) = questions.join_next().await else {
            return;
        };
        let Ok((row, Some(booked))) = answered else {
            continue;
        };
        cases[row].first.get_or_insert(booked);
        cases[row].last = Some(booked);
    }
}

fn question(
    group: &Arc<Group>,
    row: usize,
    left: &Left,
) -> impl Future<Output = (usize, Option<Booked>)> + Send + use<> {
    let docks = &group.plan.docks[group.row];
    let asked = reconcile(group, left).map(|reconcile| {
        let mut value = |name: &str, out: &mut String| left.handed.value(&group.run_tag, name, out);
        let answer = group
            .http
            .perform(&reconcile.request, &mut value, docks.timeout);
        (reconcile.clone(), answer)
    });
    async move {
        let Some((reconcile, answer)) = asked else {
            return (row, None);
        };
        let answer = answer.await;
        let booked = answer
            .result
            .ok()
            .and_then(|status| reconcile.read(status, &answer.body));
        (row, booked)
    }
}

fn reconcile<'a>(group: &'a Group, left: &Left) -> Option<&'a Reconcile> {
    let device = &group.plan.target.docks[group.plan.docks[group.row].device];
    let sent = device.sends.get(usize::from(left.handed.sends))?;
    sent.reconcile.as_ref()
}
