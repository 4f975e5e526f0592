//! Every line that can be written is read back as it was meant.

use super::expectation::{COMPARISONS, Limit, Line, METRICS, STATS, Scope, Subject, What, Word};
use super::grammar;
use crate::plan::quantity;
use proptest::prelude::*;
use std::fmt;
use std::time::Duration;

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.each {
            formatter.write_str("each ")?;
        }
        match &self.subject {
            Subject::AttemptsPer(name) => write!(formatter, "attempts per {}", name.text)?,
            Subject::Mark(name) => formatter.write_str(&name.text)?,
            Subject::Metric {
                name, metric, stat, ..
            } => {
                if let Some(name) = name {
                    write!(formatter, "{} ", name.text)?;
                }
                formatter.write_str(metric.name())?;
                let stat = stat.and_then(|stat| STATS.iter().find(|(_, known)| *known == stat));
                stat.map_or(Ok(()), |(name, _)| write!(formatter, " {name}"))?;
            }
        }
        let sign = COMPARISONS
            .iter()
            .find(|(_, known)| *known == self.comparison)
            .map_or("", |(sign, _)| sign);
        write!(formatter, " {sign} {}", self.limit)?;
        self.scopes
            .iter()
            .try_for_each(|(scope, _)| write!(formatter, " {scope}"))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A share was read as percent ÷ 100; the rounding takes that back.
            Limit::Share(share) => write!(formatter, "{}%", (share * 1e14).round() / 1e12),
            Limit::Time(time) => formatter.write_str(&quantity::duration(*time)),
            Limit::PerSecond(rate) => write!(formatter, "{rate}/s"),
            Limit::Count(count) => write!(formatter, "{count}"),
            Limit::TimesBaseline(factor) => write!(formatter, "{factor}x baseline"),
            Limit::TimesLast(factor) => write!(formatter, "{factor}x last"),
        }
    }
}

fn name() -> impl Strategy<Value = Word> {
    "[a-z][a-z0-9_-]{0,8}x".prop_map(|text| Word { text, at: 0 })
}

fn time() -> impl Strategy<Value = Duration> {
    (1u64..100_000_000).prop_map(|millis| Duration::from_millis(millis / 7 + 1))
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        name().prop_map(What::Name),
        Just(What::EachTrigger),
        Just(What::EachFault)
    ]
}

fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![
        what().prop_map(Scope::After),
        what().prop_map(Scope::During),
        what().prop_map(Scope::FromRemovalOf),
        (time(), what()).prop_map(|(time, after)| Scope::Within { time, after }),
        time().prop_map(Scope::InEvery),
        time().prop_map(Scope::For),
        Just(Scope::OutsideTriggers),
        Just(Scope::OutsideFaults),
        Just(Scope::AtEnd),
        Just(Scope::IfProbed),
    ]
}

fn limit() -> impl Strategy<Value = Limit> {
    let number = || (0u32..1_000_000).prop_map(|number| f64::from(number) / 1_000.0);
    prop_oneof![
        (0u32..=10_000).prop_map(|share| Limit::Share(f64::from(share) / 100.0 / 100.0)),
        time().prop_map(Limit::Time),
        number().prop_map(Limit::PerSecond),
        number().prop_map(Limit::Count),
        number().prop_map(Limit::TimesBaseline),
        number().prop_map(Limit::TimesLast),
    ]
}

fn subject() -> impl Strategy<Value = Subject> {
    let metric = (
        0..METRICS.len(),
        proptest::option::of(0..STATS.len()),
        proptest::option::of(name()),
    );
    let metric = metric.prop_map(|(metric, stat, name)| Subject::Metric {
        name,
        metric: METRICS[metric].1,
        metric_at: 0,
        stat: stat.map(|stat| STATS[stat].1),
    });
    prop_oneof![metric, name().prop_map(Subject::AttemptsPer)]
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(
        each in any::<bool>(),
        subject in subject(),
        comparison in 0..COMPARISONS.len(),
        limit in limit(),
        scopes in proptest::collection::vec(scope(), 0..4),
    ) {
        let scopes = scopes.into_iter().map(|scope| (scope, 0)).collect();
        let line = Line { each, subject, comparison: COMPARISONS[comparison].1, limit, limit_at: 0, scopes };
        let text = line.to_string();
        let read = grammar::parse(&text);
        prop_assert!(read.is_ok(), "{text}: {read:?}");
        // Places differ; what is printed again must not.
        prop_assert_eq!(read.map(|line| line.to_string()), Ok(text));
    }
}
