//! What an expectation measures: from its words to rows of the plan's lists, and the units that its limit may have.

use super::expectation::{Metric, Subject as Words, Word};
use super::grammar::BadLine;
use super::resolve::{bad, unknown};
use crate::event::OperationId;
use crate::plan::Plan;
use crate::plan::expect::{
    CommandState, HubRate, HubState, QueueSignal, Share, Stat, Subject, TimeOf, Unit,
};
use crate::plan::metric;
use crate::plan::operation::OperationKind;
use crate::plan::probe::Plays;

/// The kinds of limit that a subject may be compared with.
pub(super) const SHARE: &[Unit] = &[Unit::Share, Unit::TimesBaseline];
pub(super) const TIME: &[Unit] = &[Unit::Time, Unit::TimesBaseline];
pub(super) const COUNT: &[Unit] = &[Unit::Count, Unit::TimesBaseline];
const SHARE_OR_COUNT: &[Unit] = &[Unit::Share, Unit::Count];
const RATE: &[Unit] = &[Unit::PerSecond, Unit::TimesBaseline];

/// A subject and the units that its limit may have.
pub(super) type Found = (Subject, &'static [Unit]);

/// Looks names up in a plan.
pub(super) struct Subjects<'a> {
    pub plan: &'a Plan,
    /// The line says `if probed`: a target without the probe is no mistake.
    pub is_probed: bool,
}

impl Subjects<'_> {
    /// What the words of a subject stand for.
    pub fn subject(&self, subject: &Words) -> Result<Found, BadLine> {
        match subject {
            Words::AttemptsPer(name) => {
                let fits = |kind| {
                    !matches!(
                        kind,
                        OperationKind::Telemetry { .. }
                            | OperationKind::Answer { .. }
                            | OperationKind::Span { .. }
                            | OperationKind::Reauthenticate { .. }
                            | OperationKind::Command { .. }
                            | OperationKind::Token { .. }
                    )
                };
                let operations = self.operations(name, "attempts", fits)?;
                Ok((Subject::AttemptsPer { operations }, COUNT))
            }
            Words::Mark(name) => self.alert(name),
            Words::Metric {
                name,
                metric,
                metric_at,
                stat,
            } => {
                self.check_stat(*metric, *metric_at, *stat)?;
                self.metric(name.as_ref(), *metric, *metric_at, *stat)
            }
        }
    }

    /// Some metrics are a distribution and need a statistic; the others have none.
    fn check_stat(&self, metric: Metric, at: usize, stat: Option<Stat>) -> Result<(), BadLine> {
        let needs = metric::METRICS
            .iter()
            .any(|row| row.stat && row.word == metric.name());
        let name = metric.name();
        match stat {
            None if needs => Err(bad(
                at,
                format!("which {name}?"),
                format!("write `{name} p95`, or mean, max, another percentile"),
            )),
            Some(_) if !needs => Err(bad(
                at,
                format!("`{name}` has no percentile, mean or max"),
                format!("write `{name}` alone"),
            )),
            _ => Ok(()),
        }
    }

    fn metric(
        &self,
        name: Option<&Word>,
        metric: Metric,
        at: usize,
        stat: Option<Stat>,
    ) -> Result<Found, BadLine> {
        let named = || name.ok_or_else(|| nameless(metric, at));
        match metric {
            Metric::Success => self.share(named()?, Share::Success),
            Metric::Declined => self.share(named()?, Share::Declined),
            Metric::Unfinished => self.share(named()?, Share::Unfinished),
            Metric::Latency => self.time(named()?, TimeOf::Latency, stat),
            Metric::Service => self.time(named()?, TimeOf::Service, stat),
            Metric::Lost if name.is_some_and(|name| self.is_hubs(name)) => {
                self.hubs(named()?, HubState::Lost)
            }
            Metric::Lost | Metric::Duplicated | Metric::InDoubt
                if name.is_some_and(|name| self.is_docks(name)) =>
            {
                self.returns(named()?, metric)
            }
            Metric::Stored | Metric::Active => self.returns(named()?, metric),
            Metric::Delay => self.delay(named()?, stat),
            Metric::InTime => self.commands(named()?, CommandState::InTime),
            Metric::Late => self.commands(named()?, CommandState::Late),
            Metric::Expired => self.commands(named()?, CommandState::Expired),
            Metric::Lost => self.commands(named()?, CommandState::Lost),
            Metric::Duplicated => self.commands(named()?, CommandState::Duplicated),
            Metric::Unexpected => self.commands(named()?, CommandState::Unexpected),
            Metric::InDoubt => self.commands(named()?, CommandState::InDoubt),
            Metric::Stale => self.stale(named()?),
            Metric::Connected => self.hubs(named()?, HubState::Connected),
            Metric::Refused => self.hubs(named()?, HubState::Refused),
            Metric::Stuck => self.hubs(named()?, HubState::Stuck),
            Metric::Throttled => self.hubs(named()?, HubState::Throttled),
            Metric::Connects => self.rate(name, at, HubRate::Connects),
            Metric::Reconnects => self.rate(name, at, HubRate::Reconnects),
            Metric::Wait
            | Metric::Waiting
            | Metric::Saturation
            | Metric::Stalled
            | Metric::Timeouts
            | Metric::AcquiresPerRequest => self.pool(named()?, metric, stat),
            Metric::Connections | Metric::Disconnects | Metric::Takeovers | Metric::Dropped => {
                self.broker(named()?, metric)
            }
            Metric::Depth => self.queue(named()?, QueueSignal::Depth, COUNT),
            Metric::Age => self.queue(named()?, QueueSignal::Age, TIME),
            Metric::Value => self.probe(named()?),
            Metric::Recovery => self.recovery(name, at, metric),
            Metric::Blind => {
                self.check_nameless(name, metric)?;
                Ok((Subject::Blind, &[Unit::Share, Unit::Time]))
            }
            Metric::Drain => {
                let (_, units) = self.recovery(name, at, metric)?;
                Ok((Subject::Drain, units))
            }
            Metric::Synchronisation => {
                self.check_nameless(name, metric)?;
                Ok((Subject::Synchronisation, COUNT))
            }
            Metric::CriticalShare => {
                self.check_nameless(name, metric)?;
                self.critical_share(at)
            }
        }
    }

    pub(super) fn check_nameless(
        &self,
        name: Option<&Word>,
        metric: Metric,
    ) -> Result<(), BadLine> {
        name.map_or(Ok(()), |name| {
            let message = format!(
                "`{}` is of the whole run, not of `{}`",
                metric.name(),
                name.text
            );
            Err(bad(
                name.at,
                message,
                format!("write `{}` alone", metric.name()),
            ))
        })
    }

    /// The operations of a name that fit.
    fn operations(
        &self,
        name: &Word,
        metric: &str,
        fits: impl Fn(OperationKind) -> bool,
    ) -> Result<Vec<OperationId>, BadLine> {
        let rows = || self.plan.operations.iter().enumerate();
        let found: Vec<OperationId> = rows()
            .filter(|(_, operation)| operation.name == name.text && fits(operation.kind))
            .filter_map(|(row, _)| u16::try_from(row).ok().map(OperationId))
            .collect();
        if !found.is_empty() {
            return Ok(found);
        }
        if let Some((_, operation)) = rows().find(|(_, operation)| operation.name == name.text) {
            let what = kind_name(operation.kind);
            let help = match operation.kind {
                OperationKind::Journey { .. } => {
                    "thinking is part of a journey; name one of its steps"
                }
                OperationKind::Issue { .. } | OperationKind::Command { .. } => {
                    "write `in time`, `late`, `lost` and so on"
                }
                _ => "name a step, a journey or `connect`",
            };
            return Err(bad(
                name.at,
                format!("`{}` is {what}, which has no {metric}", name.text),
                help,
            ));
        }
        let mut known: Vec<&str> = rows()
            .filter(|(_, operation)| fits(operation.kind))
            .map(|(_, operation)| operation.name.as_str())
            .collect();
        known.sort_unstable();
        known.dedup();
        Err(unknown(name, &known))
    }

    fn share(&self, name: &Word, of: Share) -> Result<Found, BadLine> {
        let fits = |kind| {
            !matches!(
                kind,
                OperationKind::Issue { .. } | OperationKind::Command { .. }
            )
        };
        let operations = self.operations(name, "success", fits)?;
        Ok((Subject::Share { operations, of }, SHARE))
    }

    fn time(&self, name: &Word, of: TimeOf, stat: Option<Stat>) -> Result<Found, BadLine> {
        let fits = |kind| !matches!(kind, OperationKind::Journey { .. });
        let operations = self.operations(name, "latency", fits)?;
        let stat = stat.unwrap_or(Stat::Max);
        Ok((
            Subject::Time {
                operations,
                of,
                stat,
            },
            TIME,
        ))
    }

    pub(super) fn commands(&self, name: &Word, of: CommandState) -> Result<Found, BadLine> {
        let issuers = &self.plan.issuers;
        let all: Vec<&str> = issuers.iter().map(|group| group.name.as_str()).collect();
        if all.is_empty() {
            return Err(bad(
                name.at,
                "nobody sends commands",
                "add `issuers:`, or leave the line out",
            ));
        }
        let rows: Vec<usize> = match name.text.as_str() {
            "commands" => (0..all.len()).collect(),
            text => all
                .iter()
                .position(|known| *known == text)
                .into_iter()
                .collect(),
        };
        if rows.is_empty() {
            return Err(unknown(name, &[&["commands"], all.as_slice()].concat()));
        }
        Ok((Subject::Commands { issuers: rows, of }, SHARE_OR_COUNT))
    }

    fn is_hubs(&self, name: &Word) -> bool {
        name.text == "hubs" || self.plan.hubs.iter().any(|group| group.name == name.text)
    }

    fn hubs(&self, name: &Word, of: HubState) -> Result<Found, BadLine> {
        let groups = self.hub_groups(Some(name), name.at)?;
        Ok((Subject::Hubs { groups, of }, SHARE_OR_COUNT))
    }

    /// Of hubs; a broker that is probed counts the connects itself.
    fn rate(&self, name: Option<&Word>, at: usize, of: HubRate) -> Result<Found, BadLine> {
        if let (Some(name), HubRate::Connects) = (name, of)
            && self.is_broker(name)
        {
            return self.broker(name, Metric::Connects);
        }
        let groups = self.hub_groups(name, at)?;
        Ok((Subject::Rate { groups, of }, RATE))
    }

    fn hub_groups(&self, name: Option<&Word>, at: usize) -> Result<Vec<usize>, BadLine> {
        let all: Vec<&str> = self
            .plan
            .hubs
            .iter()
            .map(|group| group.name.as_str())
            .collect();
        if all.is_empty() {
            return Err(bad(
                at,
                "there are no hubs",
                "add `hubs:`, or leave the line out",
            ));
        }
        match name.map(|name| name.text.as_str()) {
            None | Some("hubs") => Ok((0..all.len()).collect()),
            Some(text) => match (all.iter().position(|known| *known == text), name) {
                (Some(row), _) => Ok(vec![row]),
                (None, Some(name)) => Err(unknown(name, &[&["hubs"], all.as_slice()].concat())),
                (None, None) => Ok(Vec::new()),
            },
        }
    }

    /// The probes of a name, or all that play `part`.
    pub(super) fn sources(
        &self,
        name: &Word,
        part: Plays,
        part_name: &str,
    ) -> Result<Vec<usize>, BadLine> {
        let sources = &self.plan.target.probes.sources;
        let playing: Vec<usize> = (0..sources.len())
            .filter(|row| sources[*row].plays == part)
            .collect();
        let rows: Vec<usize> = if name.text == part_name {
            playing
        } else {
            playing
                .into_iter()
                .filter(|row| sources[*row].name == name.text)
                .collect()
        };
        let is_known =
            name.text == part_name || sources.iter().any(|source| source.name == name.text);
        if !rows.is_empty() || (self.is_probed && is_known) {
            return Ok(rows);
        }
        if sources.iter().any(|source| source.name == name.text) {
            return Err(bad(
                name.at,
                format!("`{}` does not play {part_name}", name.text),
                format!("name a probe with `plays: {part_name}`"),
            ));
        }
        if name.text == part_name {
            let help = format!(
                "add a probe that plays {part_name} to the target file, or `if probed` to the line"
            );
            return Err(bad(
                name.at,
                format!("the target has no probe that plays {part_name}"),
                help,
            ));
        }
        let known: Vec<&str> = std::iter::once(part_name)
            .chain(
                sources
                    .iter()
                    .filter(|source| source.plays == part)
                    .map(|source| source.name.as_str()),
            )
            .collect();
        Err(unknown(name, &known))
    }
}

fn nameless(metric: Metric, at: usize) -> BadLine {
    let name = metric.name();
    let example = match metric {
        Metric::InTime
        | Metric::Late
        | Metric::Expired
        | Metric::Duplicated
        | Metric::Unexpected
        | Metric::Stale
        | Metric::InDoubt
        | Metric::Lost => "commands",
        Metric::Connected | Metric::Refused | Metric::Stuck | Metric::Throttled => "hubs",
        Metric::Wait
        | Metric::Waiting
        | Metric::Saturation
        | Metric::Stalled
        | Metric::Timeouts
        | Metric::AcquiresPerRequest => "pool",
        Metric::Connections | Metric::Disconnects | Metric::Takeovers | Metric::Dropped => "broker",
        Metric::Depth | Metric::Age => "queue",
        Metric::Delay | Metric::Stored | Metric::Active => "returns",
        _ => "connect",
    };
    bad(
        at,
        format!("whose {name}?"),
        format!("put a name before it, such as `{example} {name}`"),
    )
}

fn kind_name(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Find { .. } => "the search of hubs for their shard",
        OperationKind::Connect { .. } => "the connecting of hubs",
        OperationKind::Handshake { .. } => "the TLS handshakes of hubs",
        OperationKind::Telemetry { .. } => "the telemetry of hubs",
        OperationKind::Answer { .. } => "the answers of hubs",
        OperationKind::Reauthenticate { .. } => "the re-authentication of hubs",
        OperationKind::Step { .. } => "a step",
        OperationKind::Journey { .. } => "a journey",
        OperationKind::Span { .. } => "a span",
        OperationKind::Closing { .. } => "a step that is always taken",
        OperationKind::Issue { .. } => "a group of issuers",
        OperationKind::Command { .. } => "the way of a command",
        OperationKind::Status { .. } => "the status of docks",
        OperationKind::Return { .. } => "the returns of docks",
        OperationKind::Token { .. } => "asking for a token",
    }
}
