//! What placeholders stand for while a rider is on the way.

use super::{Rider, Stage};
use std::fmt::Write;

impl Rider {
    /// Appends what `<name>` stands for in the current step: `rider` (the arrival number, six digits), `intent` (the same for every
    /// attempt of a step at one candidate, in no other step and no other run; another one for each attempt of a group without
    /// idempotency), everything kept so far, the latest of a name, the rider's place, and the columns of its account. False if the name is unknown.
    pub fn value(&self, name: &str, out: &mut String) -> bool {
        let config = &*self.config;
        let written = match name {
            "rider" => write!(out, "{:06}", self.number),
            "intent" => self.intent(out),
            _ => match self.kept.text(&config.journey, name) {
                Some(text) => out.write_str(text),
                None => match &config.places {
                    Some(places) if places.placeholder == name => {
                        out.write_str(&places.names[self.place])
                    }
                    _ => match self.account_value(name) {
                        Some(text) => out.write_str(text),
                        None => return false,
                    },
                },
            },
        };
        written.is_ok()
    }

    /// The row of its group in `Plan::riders`.
    #[must_use]
    pub fn group(&self) -> usize {
        self.config.group
    }

    /// What its account holds in this column; `None` where it has no account, or that has no such column.
    #[must_use]
    pub fn account_value(&self, column: &str) -> Option<&str> {
        let accounts = self.config.accounts.as_ref()?;
        accounts.value(self.account?, column)
    }

    fn intent(&self, out: &mut String) -> std::fmt::Result {
        let config = &*self.config;
        let step = match self.stage {
            Stage::Step(row) => row,
            Stage::Closing(row) => config.journey.steps.len() + row,
        };
        let (tag, group, number) = (&config.run_tag, config.group, self.number);
        write!(out, "{tag}-{group}-{number}-{step}")?;
        if self.candidate > 0 {
            write!(out, "-{}", self.candidate)?;
        }
        if !config.idempotency {
            write!(out, "-attempt-{}", self.attempts.made())?;
        }
        Ok(())
    }
}
