//! The grammar of expectations: one line of text in, its parts out.
//!
//! Knows words and their order, and nothing of the plan: whether a name exists is decided in `resolve`.

use super::expectation::{
    COMPARISONS, Limit, Line, METRICS, Metric, STATS, Scope, Subject, What, Word,
};
use super::units::{self, Wrong};
use super::words;
use std::time::Duration;

const SCOPES: &str = "`after NAME`, `during NAME`, `outside triggers`, `outside faults`, `from removal of NAME`, \
     `within 5m after NAME`, `in every 1m`, `for 1m`, `at end`, `if probed`";

/// Why a line can't be read, and the character (from 0) at which it goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadLine {
    pub at: usize,
    pub message: String,
    pub help: String,
}

fn bad(at: usize, message: impl Into<String>, help: impl Into<String>) -> BadLine {
    BadLine {
        at,
        message: message.into(),
        help: help.into(),
    }
}

fn at_word(wrong: Wrong, at: usize) -> BadLine {
    BadLine {
        at,
        message: wrong.message,
        help: wrong.help.unwrap_or_default(),
    }
}

/// Splits at blanks and around comparison signs.
fn words_of(text: &str) -> Vec<Word> {
    let mut found: Vec<Word> = Vec::new();
    let is_sign = |c: char| matches!(c, '<' | '>' | '=');
    let mut before = ' ';
    for (at, c) in text.chars().enumerate() {
        let joins = !before.is_whitespace() && is_sign(before) == is_sign(c);
        match found.last_mut() {
            _ if c.is_whitespace() => {}
            Some(word) if joins => word.text.push(c),
            _ => found.push(Word {
                text: c.to_string(),
                at,
            }),
        }
        before = c;
    }
    found
}

/// Reads one line.
pub(super) fn parse(text: &str) -> Result<Line, BadLine> {
    let all = words_of(text);
    let end = text.chars().count();
    let Some(sign) = all
        .iter()
        .position(|word| word.text.starts_with(['<', '>', '=']))
    else {
        return Err(match all.last() {
            Some(last) if last.text == "recovers" => bad(
                last.at,
                "`recovers` waits for something; it is no expectation",
                "write `recovery <= 60s after each trigger`",
            ),
            _ => bad(
                end,
                "nothing is compared",
                "write a line such as `unlock success >= 99.5%`",
            ),
        });
    };
    let (each, subject) = subject(&all[..sign], all[sign].at)?;
    let comparison = COMPARISONS
        .iter()
        .find(|(word, _)| *word == all[sign].text)
        .map(|(_, comparison)| *comparison);
    let comparison = comparison.ok_or_else(|| {
        bad(
            all[sign].at,
            format!("`{}` compares nothing", all[sign].text),
            "write one of `<`, `<=`, `==`, `>=`, `>`",
        )
    })?;
    let mut rest = Rest {
        words: &all[sign + 1..],
        end,
    };
    let limit_at = rest.here();
    let limit = limit(&mut rest)?;
    let mut scopes = Vec::new();
    while !rest.words.is_empty() {
        let at = rest.here();
        scopes.push((scope(&mut rest)?, at));
    }
    Ok(Line {
        each,
        subject,
        comparison,
        limit,
        limit_at,
        scopes,
    })
}

fn subject(words: &[Word], end: usize) -> Result<(bool, Subject), BadLine> {
    let (each, words) = match words {
        [first, rest @ ..] if first.text == "each" => (true, rest),
        words => (false, words),
    };
    if let [first, second, rest @ ..] = words
        && first.text == "attempts"
        && second.text == "per"
    {
        return match rest {
            [name] => Ok((each, Subject::AttemptsPer(name.clone()))),
            [] => Err(bad(
                end,
                "attempts per what?",
                "name a step, a journey, a group of issuers, or `connect`",
            )),
            [_, more, ..] => Err(bad(
                more.at,
                format!("`{}` is too much here", more.text),
                "write `attempts per unlock <= 1.2`",
            )),
        };
    }
    let Some(last) = words.last() else {
        return Err(bad(
            end,
            "nothing to measure stands before the comparison",
            "write a line such as `unlock success >= 99.5%`",
        ));
    };
    let stat = STATS
        .iter()
        .find(|(word, _)| *word == last.text)
        .map(|(_, stat)| *stat);
    if let ([word], None) = (words, stat)
        && !METRICS.iter().any(|(name, _)| *name == word.text)
        && !is_percentile(&word.text)
    {
        return Ok((each, Subject::Mark(word.clone())));
    }
    let words = if stat.is_some() {
        &words[..words.len() - 1]
    } else {
        words
    };
    let (name, metric, metric_at) = metric(words, last)?;
    Ok((
        each,
        Subject::Metric {
            name,
            metric,
            metric_at,
            stat,
        },
    ))
}

/// Looks like a statistic, whether or not there is such a one.
fn is_percentile(text: &str) -> bool {
    let digits = text.strip_prefix('p');
    digits.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// A word that stands where a metric should.
pub(super) fn unknown_metric(word: &Word) -> BadLine {
    let names = || METRICS.iter().map(|(name, _)| *name);
    let help = words::nearest(&word.text, names()).map_or_else(
        || format!("known: {}", words::listed(names())),
        |near| format!("did you mean `{near}`?"),
    );
    bad(word.at, format!("unknown metric `{}`", word.text), help)
}

/// The metric at the end of the subject, and the name before it.
fn metric(words: &[Word], last: &Word) -> Result<(Option<Word>, Metric, usize), BadLine> {
    let find = |text: &str| {
        METRICS
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, metric)| *metric)
    };
    // The longest first: `acquires per request` ends with no metric of one word, but others may.
    let found = (1..=3).rev().find_map(|count| {
        let start = words.len().checked_sub(count)?;
        let texts: Vec<&str> = words[start..]
            .iter()
            .map(|word| word.text.as_str())
            .collect();
        find(&texts.join(" ")).map(|metric| (start, metric))
    });
    let Some((start, metric)) = found else {
        let word = words.last().unwrap_or(last);
        if is_percentile(&last.text) {
            let stats = words::listed(STATS.iter().map(|(name, _)| *name));
            return Err(bad(
                last.at,
                format!("unknown statistic `{}`", last.text),
                format!("write one of {stats}"),
            ));
        }
        return Err(unknown_metric(word));
    };
    match &words[..start] {
        [] => Ok((None, metric, words[start].at)),
        [name] => Ok((Some(name.clone()), metric, words[start].at)),
        [_, more, ..] => Err(bad(
            more.at,
            format!("`{}` is too much here", more.text),
            "write a name and a metric: `unlock success`",
        )),
    }
}

/// The words that are still to be read.
struct Rest<'a> {
    words: &'a [Word],
    end: usize,
}

impl<'a> Rest<'a> {
    fn here(&self) -> usize {
        self.words.first().map_or(self.end, |word| word.at)
    }

    fn next(&mut self, wanted: &str) -> Result<&'a Word, BadLine> {
        let (first, rest) = self.words.split_first().ok_or_else(|| {
            bad(
                self.end,
                format!("{wanted} is missing"),
                format!("add {wanted} at the end"),
            )
        })?;
        self.words = rest;
        Ok(first)
    }

    /// The words of `phrase`, if they are next.
    fn takes(&mut self, phrase: &str) -> bool {
        let count = phrase.split(' ').count();
        let is_next = self.words.len() >= count
            && phrase
                .split(' ')
                .zip(self.words)
                .all(|(wanted, word)| word.text == wanted);
        if is_next {
            self.words = &self.words[count..];
        }
        is_next
    }

    fn duration(&mut self) -> Result<Duration, BadLine> {
        let word = self.next("a duration such as `1m`")?;
        let time = units::duration(&word.text).map_err(|wrong| at_word(wrong, word.at))?;
        if time.is_zero() {
            return Err(bad(
                word.at,
                "no time at all",
                "write a duration such as `1m`",
            ));
        }
        Ok(time)
    }

    fn what(&mut self) -> Result<What, BadLine> {
        if self.takes("each trigger") {
            return Ok(What::EachTrigger);
        }
        if self.takes("each fault") {
            return Ok(What::EachFault);
        }
        let word = self.next("the name of a trigger or fault")?;
        if word.text == "each" {
            return Err(bad(
                word.at,
                "each what?",
                "write `each trigger` or `each fault`",
            ));
        }
        Ok(What::Name(word.clone()))
    }
}

fn limit(rest: &mut Rest<'_>) -> Result<Limit, BadLine> {
    let word = rest.next("a limit such as `99.5%` or `2s`")?;
    let (amount, unit) = units::split_number(&word.text);
    if unit == "x" {
        let factor = units::plain_number(amount).map_err(|wrong| at_word(wrong, word.at))?;
        if rest.takes("baseline") {
            return Ok(Limit::TimesBaseline(factor));
        }
        if rest.takes("last") {
            return Ok(Limit::TimesLast(factor));
        }
        return Err(bad(
            rest.here(),
            format!("`{}` of what?", word.text),
            "write `1.5x baseline` or `1.2x last`",
        ));
    }
    let limit = if unit.is_empty() {
        units::plain_number(&word.text).map(Limit::Count)
    } else if unit.starts_with('%') {
        units::share(&word.text).map(Limit::Share)
    } else if unit.starts_with('/') {
        units::rate(&word.text).map(Limit::PerSecond)
    } else {
        units::duration(&word.text).map(Limit::Time)
    };
    limit.map_err(|wrong| at_word(wrong, word.at))
}

fn scope(rest: &mut Rest<'_>) -> Result<Scope, BadLine> {
    if rest.takes("outside triggers") {
        return Ok(Scope::OutsideTriggers);
    }
    if rest.takes("outside faults") {
        return Ok(Scope::OutsideFaults);
    }
    if rest.takes("from removal of") {
        return rest.what().map(Scope::FromRemovalOf);
    }
    if rest.takes("in every") {
        return rest.duration().map(Scope::InEvery);
    }
    if rest.takes("at end") {
        return Ok(Scope::AtEnd);
    }
    if rest.takes("if probed") {
        return Ok(Scope::IfProbed);
    }
    let word = rest.next("a scope")?;
    match word.text.as_str() {
        "after" => rest.what().map(Scope::After),
        "during" => rest.what().map(Scope::During),
        "for" => rest.duration().map(Scope::For),
        "within" => {
            let time = rest.duration()?;
            let at = rest.here();
            if !rest.takes("after") {
                return Err(bad(
                    at,
                    "within this time after what?",
                    "write `within 5m after NAME`",
                ));
            }
            Ok(Scope::Within {
                time,
                after: rest.what()?,
            })
        }
        other => Err(bad(
            word.at,
            format!("`{other}` starts no scope"),
            format!("write one of {SCOPES}"),
        )),
    }
}
