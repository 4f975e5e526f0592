//! An expectation as words: the parts of a line and how they are written. `grammar` reads them, `resolve` finds their names.

use crate::plan::expect::{Comparison, Stat};
use crate::plan::quantity;
use std::fmt;
use std::time::Duration;

/// A word of the line and where it starts, in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub text: String,
    pub at: usize,
}

/// One line, read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub each: bool,
    pub subject: Subject,
    pub comparison: Comparison,
    pub limit: Limit,
    /// Where the limit stands.
    pub limit_at: usize,
    pub scopes: Vec<(Scope, usize)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Subject {
    Metric {
        name: Option<Word>,
        metric: Metric,
        metric_at: usize,
        stat: Option<Stat>,
    },
    AttemptsPer(Word),
    /// A single word that is no metric: an alert of the target.
    Mark(Word),
}

/// What a limit is compared with, in base units: shares 0 to 1, rates per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Limit {
    Share(f64),
    Time(Duration),
    PerSecond(f64),
    Count(f64),
    TimesBaseline(f64),
    TimesLast(f64),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scope {
    After(What),
    During(What),
    OutsideTriggers,
    OutsideFaults,
    FromRemovalOf(What),
    Within { time: Duration, after: What },
    InEvery(Duration),
    For(Duration),
    AtEnd,
    IfProbed,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    Name(Word),
    EachTrigger,
    EachFault,
}

/// The one table of metrics: their words in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Metric {
    Success,
    Declined,
    Unfinished,
    Latency,
    Service,
    InTime,
    Late,
    Expired,
    Lost,
    Duplicated,
    Unexpected,
    InDoubt,
    Connected,
    Refused,
    Stuck,
    Connects,
    Reconnects,
    Wait,
    Waiting,
    Saturation,
    Stalled,
    Timeouts,
    AcquiresPerRequest,
    Connections,
    Disconnects,
    Takeovers,
    Dropped,
    Delay,
    Stored,
    Active,
    Depth,
    Age,
    Value,
    Recovery,
    Blind,
    Throttled,
    Stale,
    Drain,
    Synchronisation,
    CriticalShare,
}

pub(super) const METRICS: [(&str, Metric); 40] = [
    ("success", Metric::Success),
    ("declined", Metric::Declined),
    ("unfinished", Metric::Unfinished),
    ("latency", Metric::Latency),
    ("service", Metric::Service),
    ("in time", Metric::InTime),
    ("late", Metric::Late),
    ("expired", Metric::Expired),
    ("lost", Metric::Lost),
    ("duplicated", Metric::Duplicated),
    ("unexpected", Metric::Unexpected),
    ("in doubt", Metric::InDoubt),
    ("connected", Metric::Connected),
    ("refused", Metric::Refused),
    ("stuck", Metric::Stuck),
    ("connects", Metric::Connects),
    ("reconnects", Metric::Reconnects),
    ("wait", Metric::Wait),
    ("waiting", Metric::Waiting),
    ("saturation", Metric::Saturation),
    ("stalled", Metric::Stalled),
    ("timeouts", Metric::Timeouts),
    ("acquires per request", Metric::AcquiresPerRequest),
    ("connections", Metric::Connections),
    ("disconnects", Metric::Disconnects),
    ("takeovers", Metric::Takeovers),
    ("dropped", Metric::Dropped),
    ("delay", Metric::Delay),
    ("stored", Metric::Stored),
    ("active", Metric::Active),
    ("depth", Metric::Depth),
    ("age", Metric::Age),
    ("value", Metric::Value),
    ("recovery", Metric::Recovery),
    ("blind", Metric::Blind),
    ("throttled", Metric::Throttled),
    ("stale", Metric::Stale),
    ("drain", Metric::Drain),
    ("synchronisation", Metric::Synchronisation),
    ("critical share", Metric::CriticalShare),
];

pub(super) const STATS: [(&str, Stat); 6] = [
    ("p50", Stat::Percentile(50.0)),
    ("p95", Stat::Percentile(95.0)),
    ("p99", Stat::Percentile(99.0)),
    ("p99.9", Stat::Percentile(99.9)),
    ("mean", Stat::Mean),
    ("max", Stat::Max),
];

pub(super) const COMPARISONS: [(&str, Comparison); 5] = [
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("==", Comparison::Equal),
    ("<", Comparison::Below),
    (">", Comparison::Above),
];

impl Metric {
    pub fn name(self) -> &'static str {
        METRICS
            .iter()
            .find(|(_, metric)| *metric == self)
            .map_or("", |(name, _)| name)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::After(what) => write!(formatter, "after {what}"),
            Scope::During(what) => write!(formatter, "during {what}"),
            Scope::OutsideTriggers => formatter.write_str("outside triggers"),
            Scope::OutsideFaults => formatter.write_str("outside faults"),
            Scope::FromRemovalOf(what) => write!(formatter, "from removal of {what}"),
            Scope::Within { time, after } => {
                write!(
                    formatter,
                    "within {} after {after}",
                    quantity::duration(*time)
                )
            }
            Scope::InEvery(time) => write!(formatter, "in every {}", quantity::duration(*time)),
            Scope::For(time) => write!(formatter, "for {}", quantity::duration(*time)),
            Scope::AtEnd => formatter.write_str("at end"),
            Scope::IfProbed => formatter.write_str("if probed"),
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Name(name) => formatter.write_str(&name.text),
            What::EachTrigger => formatter.write_str("each trigger"),
            What::EachFault => formatter.write_str("each fault"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::METRICS;
    use crate::plan::metric;
    use std::collections::BTreeSet;

    /// What the grammar knows is what `rushhour metrics` prints.
    #[test]
    fn the_catalogue_has_every_metric_of_the_grammar() {
        let known: BTreeSet<&str> = METRICS.iter().map(|(word, _)| *word).collect();
        let told: BTreeSet<&str> = metric::METRICS.iter().map(|row| row.word).collect();
        let attempts = BTreeSet::from(["attempts per"]);
        assert_eq!(known, &told - &attempts);
    }
}
