//! What is read from the target, as `rushhour check` prints it.

use super::Outlook;
use crate::plan::probe::{Origin, ProbeSource, Reading, Signals};
use crate::plan::quantity::{duration, share};
use std::fmt::{self, Formatter};

impl Outlook<'_> {
    pub(super) fn probes(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let probes = &self.plan.target.probes;
        if probes.sources.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\nProbes, read every {} within {}; above {} of the load without readings the run is inconclusive",
            duration(probes.every),
            duration(probes.timeout),
            share(probes.max_blind)
        )?;
        for source in &probes.sources {
            writeln!(
                out,
                "  {:<24} {:<7}{}",
                source.name,
                source.plays.name(),
                what(source)
            )?;
            let at = place(&source.origin);
            writeln!(out, "  {:<31} {} {at}", "", source.origin.key())?;
            if let Some(assumption) = source.origin.assumption() {
                writeln!(out, "  {:<31} {assumption}", "")?;
            }
        }
        Ok(())
    }
}

/// The preset or the signals, and the labels that a series must carry.
fn what(source: &ProbeSource) -> String {
    let mut text = match &source.signals {
        Signals::Preset(name) => format!("preset {name}"),
        // What is called as a signal is that signal: the names are all the same.
        Signals::Own(_) if reads_by_name(&source.origin) => "by the names of signals".to_owned(),
        Signals::Own(signals) => {
            let each = signals.iter().map(|(name, reading)| match reading {
                Reading::Fixed(number) => format!("{name} {number}"),
                Reading::Gauge(pick) | Reading::Counter(pick) | Reading::Histogram(pick) => {
                    format!("{name} by {}", pick.metric)
                }
                Reading::Ratio { sum, count } => {
                    format!("{name} by {} ÷ {}", sum.metric, count.metric)
                }
            });
            each.collect::<Vec<_>>().join(", ")
        }
    };
    for (label, value) in &source.labels {
        text.push_str(&format!(", {label}={value:?}"));
    }
    text
}

fn reads_by_name(origin: &Origin) -> bool {
    matches!(origin, Origin::Sql { .. } | Origin::Command(_))
}

fn place(origin: &Origin) -> String {
    match origin {
        Origin::Sql {
            at,
            query: Some(query),
        } => format!("{at}: {query}"),
        Origin::PromQl { at, queries } => {
            let queries: Vec<&str> = queries.iter().map(|(_, query)| query.as_str()).collect();
            format!("{at}: {}", queries.join(", "))
        }
        Origin::Command(words) => join(words.iter()),
        Origin::Canary { with, without } => format!("{with} against {without}"),
        other => join(other.addresses().into_iter()),
    }
}

fn join<'t>(texts: impl Iterator<Item = &'t crate::plan::Template>) -> String {
    texts.map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
