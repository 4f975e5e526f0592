//! From the words of an expectation to rows of the plan: whether its names exist, its metric fits and its limit has the
//! right unit.

use super::expectation::{Limit, Line, Metric, Scope, Subject, What, Word};
use super::grammar::{self, BadLine};
use super::reader::At;
use super::subject::Subjects;
use super::words;
use crate::event::MarkId;
use crate::plan::Plan;
use crate::plan::expect::{self, Expectation, Unit};
use std::time::Duration;

/// Where a line stands: only `expect:` may speak of triggers and faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Expect,
    /// `steady` and `stop_if`, judged while the run goes on.
    Guard,
}

/// A line that could be read, with its place in the file.
pub(super) struct Written<'a> {
    at: At<'a>,
    text: &'a str,
    line: Line,
    role: Role,
}

/// Reads lines; what can't be read is in the log.
pub(super) fn lines<'a>(items: Vec<At<'a>>, role: Role) -> Vec<Written<'a>> {
    let read = |at: At<'a>| {
        let text = at.text()?;
        match grammar::parse(text) {
            Ok(line) => Some(Written {
                at,
                text,
                line,
                role,
            }),
            Err(wrong) => {
                report(&at, wrong);
                None
            }
        }
    };
    items.into_iter().filter_map(read).collect()
}

fn report(at: &At<'_>, wrong: BadLine) {
    at.wrong_within(wrong.at, wrong.message, Some(wrong.help));
}

/// How long after a trigger or fault `outside` still leaves out: the longest `recovery` limit, or else `sustain`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grace {
    pub triggers: Duration,
    pub faults: Duration,
}

impl Grace {
    pub fn of(lines: &[Written<'_>], plan: &Plan) -> Grace {
        let longest = |of_faults: bool| {
            let limits = lines.iter().filter_map(|written| {
                match (&written.line.subject, written.line.limit) {
                    (
                        Subject::Metric {
                            metric: Metric::Recovery,
                            ..
                        },
                        Limit::Time(limit),
                    ) => {
                        let speaks_of = |what: &What| match what {
                            What::EachTrigger => !of_faults,
                            What::EachFault => of_faults,
                            What::Name(name) => {
                                plan.faults.iter().any(|fault| {
                                    fault.name == name.text
                                        || fault.repeats.as_ref() == Some(&name.text)
                                }) == of_faults
                            }
                        };
                        let applies = written.line.scopes.iter().all(|(scope, _)| match scope {
                            Scope::After(what)
                            | Scope::During(what)
                            | Scope::FromRemovalOf(what) => speaks_of(what),
                            _ => true,
                        });
                        applies.then_some(limit)
                    }
                    _ => None,
                }
            });
            limits.max().unwrap_or(plan.sustain)
        };
        Grace {
            triggers: longest(false),
            faults: longest(true),
        }
    }
}

impl Written<'_> {
    /// The line as it stands in the file.
    pub fn text(&self) -> &str {
        self.text
    }
}

/// Finds the names of one line; what is wrong with it is for whoever asked.
pub(super) fn quietly(
    written: &Written<'_>,
    plan: &Plan,
    grace: Grace,
) -> Result<Expectation, String> {
    let resolver = Resolver {
        plan,
        grace,
        role: written.role,
    };
    resolver.line(written).map_err(|wrong| wrong.message)
}

/// Finds the names of every line in the plan.
pub(super) fn resolve(lines: &[Written<'_>], plan: &Plan, grace: Grace) -> Vec<Expectation> {
    let one = |written: &Written<'_>| match (Resolver {
        plan,
        grace,
        role: written.role,
    })
    .line(written)
    {
        Ok(expectation) => Some(expectation),
        Err(wrong) => {
            report(&written.at, wrong);
            None
        }
    };
    lines.iter().filter_map(one).collect()
}

struct Resolver<'a> {
    plan: &'a Plan,
    grace: Grace,
    role: Role,
}

/// A problem at a character of the line.
pub(super) fn bad(at: usize, message: impl Into<String>, help: impl Into<String>) -> BadLine {
    BadLine {
        at,
        message: message.into(),
        help: help.into(),
    }
}

impl Resolver<'_> {
    fn line(&self, written: &Written<'_>) -> Result<Expectation, BadLine> {
        let line = &written.line;
        let is_probed = line
            .scopes
            .iter()
            .any(|(scope, _)| *scope == Scope::IfProbed);
        let subjects = Subjects {
            plan: self.plan,
            is_probed,
        };
        let (subject, units) = subjects.subject(&line.subject)?;
        if self.role == Role::Guard && is_of_the_whole(&subject) {
            return Err(bad(
                0,
                "this is known only when the run is over",
                "put the line into `expect:`",
            ));
        }
        let limit = self.limit(line, units)?;
        let scopes = line
            .scopes
            .iter()
            .map(|(scope, at)| self.scope(scope, *at))
            .collect::<Result<Vec<_>, _>>()?;
        self.check_scopes(line, &subject)?;
        Ok(Expectation {
            text: written.text.to_owned(),
            place: written.at.log().text_of(written.at.place()),
            each: line.each,
            subject,
            comparison: line.comparison,
            limit,
            scopes,
        })
    }

    fn limit(&self, line: &Line, units: &[Unit]) -> Result<expect::Limit, BadLine> {
        let (value, unit) = match line.limit {
            Limit::Share(share) => (share, Unit::Share),
            Limit::Time(time) => (time.as_micros() as f64, Unit::Time),
            Limit::PerSecond(rate) => (rate, Unit::PerSecond),
            Limit::Count(count) => (count, Unit::Count),
            Limit::TimesBaseline(factor) => (factor, Unit::TimesBaseline),
            Limit::TimesLast(factor) => (factor, Unit::TimesLast),
        };
        // What can be a multiple of the quiet time can be one of an earlier run; so can what has but one unit.
        let of_last = unit == Unit::TimesLast
            && (units.contains(&Unit::TimesBaseline) || matches!(units, [_]));
        if of_last && self.role == Role::Guard {
            return Err(bad(
                line.limit_at,
                "`last` is for lines of `expect:`",
                "write a limit with its unit, or `1.5x baseline`",
            ));
        }
        if !units.contains(&unit) && !of_last {
            let wanted: Vec<&str> = units.iter().map(|unit| unit_example(*unit)).collect();
            return Err(bad(
                line.limit_at,
                format!("this can't be compared with {}", unit_name(unit)),
                format!("write {}", wanted.join(" or ")),
            ));
        }
        if unit == Unit::TimesBaseline
            && self.plan.triggers.is_empty()
            && self.plan.faults.is_empty()
        {
            return Err(bad(
                line.limit_at,
                "there is no baseline: nothing is triggered and nothing breaks",
                "write a limit with its unit",
            ));
        }
        Ok(expect::Limit { value, unit })
    }

    fn scope(&self, scope: &Scope, at: usize) -> Result<expect::Scope, BadLine> {
        let marks = matches!(
            scope,
            Scope::After(_)
                | Scope::During(_)
                | Scope::FromRemovalOf(_)
                | Scope::Within { .. }
                | Scope::AtEnd
        );
        if marks && self.role == Role::Guard {
            return Err(bad(
                at,
                format!("`{scope}` is not known while the run goes on"),
                "use `for` or `in every` in `steady` and `stop_if`",
            ));
        }
        Ok(match scope {
            Scope::After(what) => expect::Scope::After(self.what(what, at)?),
            Scope::During(what) => expect::Scope::During(self.what(what, at)?),
            Scope::FromRemovalOf(what) => expect::Scope::FromRemovalOf(self.what(what, at)?),
            Scope::Within { time, after } => expect::Scope::Within {
                time: *time,
                after: self.what(after, at)?,
            },
            Scope::OutsideTriggers => expect::Scope::OutsideTriggers {
                grace: self.grace.triggers,
            },
            Scope::OutsideFaults => expect::Scope::OutsideFaults {
                grace: self.grace.faults,
            },
            Scope::InEvery(time) => expect::Scope::InEvery(*time),
            Scope::For(time) => expect::Scope::For(*time),
            Scope::AtEnd => expect::Scope::AtEnd,
            Scope::IfProbed => expect::Scope::IfProbed,
        })
    }

    fn what(&self, what: &What, at: usize) -> Result<expect::What, BadLine> {
        match what {
            What::EachTrigger if self.plan.triggers.is_empty() => Err(bad(
                at,
                "there is no trigger",
                "add one to `timeline:`, or leave the line out",
            )),
            What::EachFault if self.plan.faults.is_empty() => Err(bad(
                at,
                "there is no fault",
                "give an experiment with `--chaos`, or leave the line out",
            )),
            What::EachTrigger => Ok(expect::What::EachTrigger),
            What::EachFault => Ok(expect::What::EachFault),
            What::Name(name) => {
                let mut faults = self.plan.faults.iter();
                let repeated = faults.position(|fault| fault.repeats.as_ref() == Some(&name.text));
                if let Some(row) = repeated {
                    return Ok(expect::What::Repeated(self.plan.fault_mark(row)));
                }
                let triggers = self
                    .plan
                    .triggers
                    .iter()
                    .map(|trigger| trigger.name.as_str());
                let known: Vec<&str> = triggers
                    .chain(self.plan.faults.iter().map(|fault| fault.name.as_str()))
                    .collect();
                let row = known
                    .iter()
                    .position(|known| *known == name.text)
                    .and_then(|row| u16::try_from(row).ok());
                row.map(|row| expect::What::One(MarkId(row)))
                    .ok_or_else(|| unknown(name, &known))
            }
        }
    }

    /// Scopes that say nothing for a subject are refused rather than passed over.
    fn check_scopes(&self, line: &Line, subject: &expect::Subject) -> Result<(), BadLine> {
        let is_recovery = *subject == expect::Subject::Recovery;
        let is_of_a_mark = is_recovery
            || matches!(
                subject,
                expect::Subject::Drain | expect::Subject::Alert { .. }
            );
        if let (expect::Subject::CriticalShare, [(scope, at), ..]) =
            (subject, line.scopes.as_slice())
        {
            return Err(bad(
                *at,
                format!("`{scope}` says nothing about the critical share"),
                "write `critical share >= 100%` alone",
            ));
        }
        for (row, (scope, at)) in line.scopes.iter().enumerate() {
            if matches!(scope, Scope::FromRemovalOf(_)) && !is_recovery {
                return Err(bad(
                    *at,
                    "`from removal of` is for `recovery`",
                    "write `after NAME`",
                ));
            }
            if is_recovery && !matches!(scope, Scope::After(_) | Scope::FromRemovalOf(_)) {
                return Err(bad(
                    *at,
                    format!("`{scope}` says nothing about a recovery"),
                    "write `after NAME` or `from removal of NAME`",
                ));
            }
            if is_of_a_mark && !is_recovery && !matches!(scope, Scope::After(_)) {
                return Err(bad(
                    *at,
                    format!("`{scope}` says nothing about this"),
                    "write `after NAME`",
                ));
            }
            let is_repeated = |(other, _): &(Scope, usize)| {
                std::mem::discriminant(other) == std::mem::discriminant(scope)
            };
            if line.scopes[..row].iter().any(is_repeated) {
                return Err(bad(
                    *at,
                    "a second scope of the same kind",
                    "write a line for each",
                ));
            }
        }
        Ok(())
    }
}

/// What is known when the run is over, and not before.
fn is_of_the_whole(subject: &expect::Subject) -> bool {
    matches!(
        subject,
        expect::Subject::Recovery
            | expect::Subject::Drain
            | expect::Subject::CriticalShare
            | expect::Subject::Alert { .. }
    )
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Share => "a share",
        Unit::Time => "a time",
        Unit::PerSecond => "a rate",
        Unit::Count => "a plain number",
        Unit::TimesBaseline => "a multiple of the baseline",
        Unit::TimesLast => "a multiple of an earlier run",
    }
}

fn unit_example(unit: Unit) -> &'static str {
    match unit {
        Unit::Share => "a share such as `99.5%`",
        Unit::Time => "a time such as `2s`",
        Unit::PerSecond => "a rate such as `500/s`",
        Unit::Count => "a plain number such as `0`",
        Unit::TimesBaseline => "`1.5x baseline`",
        Unit::TimesLast => "`1.2x last`",
    }
}

/// A name that stands for nothing, with what was probably meant.
pub(super) fn unknown(name: &Word, known: &[&str]) -> BadLine {
    let help = match words::nearest(&name.text, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "there is none at all".to_owned(),
        None => format!("known here: {}", words::listed(known.iter().copied())),
    };
    bad(
        name.at,
        format!("nothing is called `{}` here", name.text),
        help,
    )
}
