//! What a rider remembers of the answers so far.

use crate::event::Outcome;
use crate::plan::target::{Answer, Journey, Repeat, StepAction};
use serde_json::Value;

/// Values by the names under which steps keep them; names are those of the journey.
#[derive(Debug, Default)]
pub(super) struct Kept {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    /// The step that kept it.
    step: usize,
    what: What,
}

#[derive(Debug)]
enum What {
    /// Row `entry` of the step's `keep`.
    Text {
        entry: usize,
        text: String,
    },
    List {
        entry: usize,
        texts: Vec<String>,
    },
    /// The candidate that the step tries.
    Candidate(String),
}

impl Kept {
    /// Keeps what a success of step `step` is to leave behind.
    pub fn keep(&mut self, step: usize, answer: &Answer, document: &Value) -> Outcome {
        let missing = if answer.or_end.is_some() {
            Outcome::Declined
        } else {
            Outcome::Protocol
        };
        for (entry, (_, path)) in answer.keep.iter().enumerate() {
            let what = if path.is_list() {
                let texts = path.texts(document);
                if texts.is_empty() {
                    return missing;
                }
                What::List { entry, texts }
            } else {
                match path.text(document) {
                    Some(text) => What::Text { entry, text },
                    None => return missing,
                }
            };
            self.entries.push(Entry { step, what });
        }
        Outcome::Ok
    }

    /// The candidate in row `row` of the list becomes the one that `step` tries; false if there is none.
    pub fn try_candidate(
        &mut self,
        journey: &Journey,
        step: usize,
        list: &str,
        row: usize,
    ) -> bool {
        let mut lists = self.entries.iter().rev();
        let found = lists.find_map(|entry| match &entry.what {
            What::List { texts, .. } if name_of(journey, entry) == Some(list) => texts.get(row),
            _ => None,
        });
        let Some(text) = found.cloned() else {
            return false;
        };
        let what = What::Candidate(text);
        self.entries.push(Entry { step, what });
        true
    }

    /// The text under a name, the latest of them.
    pub fn text<'a>(&'a self, journey: &Journey, name: &str) -> Option<&'a str> {
        let mut entries = self.entries.iter().rev();
        entries.find_map(|entry| match &entry.what {
            What::Text { text, .. } | What::Candidate(text)
                if name_of(journey, entry) == Some(name) =>
            {
                Some(text.as_str())
            }
            _ => None,
        })
    }
}

fn name_of<'a>(journey: &'a Journey, entry: &Entry) -> Option<&'a str> {
    let step = journey.steps.get(entry.step)?;
    match (&entry.what, &step.action, &step.repeat) {
        (What::Candidate(_), _, Repeat::ForEach(candidates)) => Some(&candidates.each),
        (What::Text { entry, .. } | What::List { entry, .. }, StepAction::Request(request), _) => {
            let (name, _) = request.answer.keep.get(*entry)?;
            Some(name)
        }
        _ => None,
    }
}
