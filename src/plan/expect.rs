//! Expectations as data: the grammar of FORMATS, parsed and with its names looked up.

use crate::event::{MarkId, OperationId};
use std::collections::BTreeMap;
use std::time::Duration;

/// One line that must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// The line as written.
    pub text: String,
    /// `file:line:column` where it was written.
    pub place: String,
    /// `each` before the subject: every matching row must hold by itself.
    pub each: bool,
    pub subject: Subject,
    pub comparison: Comparison,
    pub limit: Limit,
    /// All must apply; none means 0:00 to the end of the load.
    pub scopes: Vec<Scope>,
}

/// What is measured. Operations and groups are rows of the plan's lists, never empty.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// `unlock success`, `declined`, `unfinished`: a share of the finished (or started) actions.
    Share {
        operations: Vec<OperationId>,
        of: Share,
    },
    /// `unlock latency p95`, `connect service p99`.
    Time {
        operations: Vec<OperationId>,
        of: TimeOf,
        stat: Stat,
    },
    /// `attempts per unlock`
    AttemptsPer { operations: Vec<OperationId> },
    /// `commands lost`, `app in time`: rows of `Plan::issuers`; as a count or, where the limit is in %, as a share of the commands due.
    Commands {
        issuers: Vec<usize>,
        of: CommandState,
    },
    /// `hubs connected`, `homes lost`: rows of `Plan::hubs`; a count or a share of the group.
    Hubs { groups: Vec<usize>, of: HubState },
    /// `hubs connects`, `reconnects`: per second.
    Rate { groups: Vec<usize>, of: HubRate },
    /// `pool wait mean`, `pool stalled`: rows of `Probes::sources`.
    Pool {
        sources: Vec<usize>,
        of: PoolSignal,
        stat: Option<Stat>,
    },
    /// `queue depth`
    Queue {
        sources: Vec<usize>,
        of: QueueSignal,
    },
    /// `broker takeovers`, `emqx connects`
    Broker {
        sources: Vec<usize>,
        of: BrokerSignal,
    },
    /// `trips-open value`
    Probe { source: usize },
    /// `returns lost`, `stations stored`: rows of `Plan::docks`; a count or a share of the returns handed over.
    Returns { docks: Vec<usize>, of: ReturnFigure },
    /// `recovery`
    Recovery,
    /// `drain`: until what had piled up was gone, from the mark's end.
    Drain,
    /// `synchronisation`: by how much attempts to connect (without hubs: all attempts) vary more than chance does.
    Synchronisation,
    /// `critical share`: the largest disconnect from which the target recovers by itself, as a share of the fleet.
    CriticalShare,
    /// `reconnects-high <= 3m after drop`: an alert, a row of `Target::alerts`, from the mark's begin on.
    Alert { alert: usize },
    /// `blind`: share of the run without readings.
    Blind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    Success,
    Declined,
    Unfinished,
}

/// From the due time, or from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeOf {
    Latency,
    Service,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stat {
    /// 50, 95, 99 or 99.9.
    Percentile(f64),
    Mean,
    Max,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandState {
    InTime,
    Late,
    Expired,
    Lost,
    Duplicated,
    Unexpected,
    InDoubt,
    /// Seen by a ghost on a shard that their hub had left; by the second in which they were seen.
    Stale,
}

/// What is counted of returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnFigure {
    Lost,
    Duplicated,
    InDoubt,
    /// Held by docks: at the end of a second, or after everything when judged at the end.
    Stored,
    /// Trips that the target still took for active when it was last asked.
    Active,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HubState {
    Connected,
    Lost,
    Refused,
    /// The session stands, and no publish is acknowledged.
    Stuck,
    /// Refused because there were too many at once.
    Throttled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HubRate {
    Connects,
    Reconnects,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolSignal {
    Wait,
    Waiting,
    Saturation,
    Stalled,
    Timeouts,
    /// Connections taken for each HTTP request that was sent.
    AcquiresPerRequest,
}

/// What a broker counts itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokerSignal {
    Connections,
    /// Per second.
    Connects,
    /// Per second.
    Disconnects,
    Takeovers,
    Dropped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueSignal {
    Depth,
    Age,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Below,
    AtMost,
    Equal,
    AtLeast,
    Above,
}

impl Comparison {
    /// Whether `measured` keeps the limit.
    #[must_use]
    pub fn holds(self, measured: f64, limit: f64) -> bool {
        match self {
            Comparison::Below => measured < limit,
            Comparison::AtMost => measured <= limit,
            Comparison::Equal => measured == limit,
            Comparison::AtLeast => measured >= limit,
            Comparison::Above => measured > limit,
        }
    }
}

/// The limit in the base unit of its subject: shares 0 to 1, times in microseconds, rates per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    pub value: f64,
    pub unit: Unit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Share,
    Time,
    PerSecond,
    Count,
    /// A multiple of the quiet time before the trigger.
    TimesBaseline,
    /// A multiple of what an earlier run measured for the same line.
    TimesLast,
}

impl Unit {
    /// Whether a limit in it is a multiple of something measured.
    #[must_use]
    pub fn is_multiple(self) -> bool {
        matches!(self, Unit::TimesBaseline | Unit::TimesLast)
    }
}

/// One of the target's own alert rules.
#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    pub name: String,
    /// As written.
    pub rule: String,
    /// Why it can't be rehearsed with this profile, if it can't.
    pub line: Result<Expectation, String>,
}

/// An earlier run that this one is compared with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Against {
    pub run: String,
    /// By [`key`]: what was measured, in the base unit of the subject; `None` where it had no value.
    pub values: BTreeMap<String, Option<f64>>,
}

/// What a line is about, without its limit: the same for `recovery <= 60s after drop` and `recovery <= 1.2x last after drop`.
#[must_use]
pub fn key(text: &str) -> String {
    let is_sign = |c: char| matches!(c, '<' | '>' | '=');
    let (subject, rest) = match text.find(is_sign) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let mut words = rest.trim_start_matches(is_sign).split_whitespace();
    let limit = words.next().unwrap_or_default();
    let mut words = words.peekable();
    if limit.ends_with('x') {
        words.next_if(|word| matches!(*word, "baseline" | "last"));
    }
    let subject = subject.split_whitespace();
    subject.chain(words).collect::<Vec<_>>().join(" ")
}

/// Where in the run a line is judged.
#[derive(Debug, Clone, PartialEq)]
pub enum Scope {
    /// From the end of the mark to the next mark, or to the load's end.
    After(What),
    /// From the start of the mark to its end.
    During(What),
    /// All but, for each trigger, its start to its end plus `grace`.
    OutsideTriggers {
        grace: Duration,
    },
    OutsideFaults {
        grace: Duration,
    },
    /// For `recovery`: counted from the removal, not from the injection.
    FromRemovalOf(What),
    /// True at the mark's end plus `time` at the latest, and from then on.
    Within {
        time: Duration,
        after: What,
    },
    /// The worst sliding window of this length.
    InEvery(Duration),
    /// Without a break for this long.
    For(Duration),
    AtEnd,
    /// Not judged where the target has no such probe.
    IfProbed,
}

/// Marks that a scope speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    One(MarkId),
    /// Every repetition of a fault, of which this is the first.
    Repeated(MarkId),
    EachTrigger,
    EachFault,
}
