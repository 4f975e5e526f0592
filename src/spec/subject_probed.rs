//! What expectations say of what is probed: pools, queues, brokers, values.

use super::expectation::{Metric, Word};
use super::grammar::BadLine;
use super::resolve::{bad, unknown};
use super::subject::{COUNT, Found, SHARE, Subjects, TIME};
use crate::plan::expect::{BrokerSignal, PoolSignal, QueueSignal, Stat, Subject, Unit};
use crate::plan::probe::{Plays, Reading, Signals};
use crate::plan::signal::{PRESETS, Signal};

/// Every probe that plays a broker.
const ALL: &str = "broker";

impl Subjects<'_> {
    pub(super) fn is_broker(&self, name: &Word) -> bool {
        let sources = &self.plan.target.probes.sources;
        name.text == ALL
            || sources
                .iter()
                .any(|source| source.plays == Plays::Broker && source.name == name.text)
    }

    /// What the brokers of this name count; a metric that is none of theirs stands for connections.
    pub(super) fn broker(&self, name: &Word, metric: Metric) -> Result<Found, BadLine> {
        let of = match metric {
            Metric::Connects => BrokerSignal::Connects,
            Metric::Disconnects => BrokerSignal::Disconnects,
            Metric::Takeovers => BrokerSignal::Takeovers,
            Metric::Dropped => BrokerSignal::Dropped,
            _ => BrokerSignal::Connections,
        };
        let sources = self.sources(name, Plays::Broker, ALL)?;
        let units: &[Unit] = match of {
            BrokerSignal::Connects | BrokerSignal::Disconnects => {
                &[Unit::PerSecond, Unit::TimesBaseline]
            }
            BrokerSignal::Connections => &[Unit::Count, Unit::TimesBaseline],
            BrokerSignal::Takeovers | BrokerSignal::Dropped => &[Unit::Count],
        };
        Ok((Subject::Broker { sources, of }, units))
    }

    /// What the pools of this name say; a metric that is none of theirs stands for the wait.
    pub(super) fn pool(
        &self,
        name: &Word,
        metric: Metric,
        stat: Option<Stat>,
    ) -> Result<Found, BadLine> {
        let (of, units): (_, &[Unit]) = match metric {
            Metric::Waiting => (PoolSignal::Waiting, COUNT),
            Metric::Saturation => (PoolSignal::Saturation, SHARE),
            Metric::Stalled => (PoolSignal::Stalled, &[Unit::Time]),
            Metric::Timeouts => (PoolSignal::Timeouts, COUNT),
            Metric::AcquiresPerRequest => (PoolSignal::AcquiresPerRequest, COUNT),
            _ => (PoolSignal::Wait, TIME),
        };
        let stat = stat.filter(|_| of == PoolSignal::Wait);
        let sources = self.sources(name, Plays::Pool, "pool")?;
        if let Some(Stat::Percentile(_)) = stat {
            let all = &self.plan.target.probes.sources;
            if let Some(row) = sources
                .iter()
                .find(|row| !has_wait_histogram(&all[**row].signals))
            {
                let source = &all[*row].name;
                let message =
                    format!("`{source}` exports no histogram of waits, so there is no percentile");
                return Err(bad(name.at, message, "write `wait mean`, or `stalled`"));
            }
        }
        Ok((Subject::Pool { sources, of, stat }, units))
    }

    pub(super) fn queue(
        &self,
        name: &Word,
        of: QueueSignal,
        units: &'static [Unit],
    ) -> Result<Found, BadLine> {
        let sources = self.sources(name, Plays::Queue, "queue")?;
        Ok((Subject::Queue { sources, of }, units))
    }

    pub(super) fn probe(&self, name: &Word) -> Result<Found, BadLine> {
        let sources = self.sources(name, Plays::Value, "value")?;
        let source = sources.first().ok_or_else(|| unknown(name, &[]))?;
        Ok((Subject::Probe { source: *source }, COUNT))
    }
}

fn has_wait_histogram(signals: &Signals) -> bool {
    match signals {
        Signals::Preset(name) => PRESETS
            .iter()
            .any(|preset| preset.name == name && preset.has_wait_histogram),
        Signals::Own(readings) => readings.iter().any(|(signal, reading)| {
            let is_histogram = signal == "wait" && matches!(reading, Reading::Histogram(_));
            is_histogram || signal == Signal::WaitP99.name()
        }),
    }
}
