//! How the target came back from each trigger and fault, as rows and as sentences.

use super::data::{
    AlertRow, BacklogRow, CollapseRow, LossRow, ReconnectRow, RecoveryRow, SignalRow,
};
use super::{Report, text};
use crate::event::Offset;
use crate::measure::recovery::{Backlog, Effect, Recovery, RecoveryOutcome, SignalRecovery};
use crate::measure::{Collector, Rehearsal, figures};
use std::fmt::Write;

/// One row for each mark that began.
pub(super) fn rows(
    collector: &Collector,
    recoveries: &[Recovery],
    rehearsals: &[Rehearsal],
) -> Vec<RecoveryRow> {
    recoveries
        .iter()
        .map(|recovery| row(collector, recovery, rehearsals))
        .collect()
}

/// Moments as the report has them.
struct Times<'a>(&'a Collector);

impl Times<'_> {
    fn us(&self, at: Offset) -> i64 {
        self.0.marks().from_zero_us(at)
    }

    fn clock(&self, at: Offset) -> String {
        figures::clock(self.us(at).div_euclid(1_000_000))
    }
}

fn row(collector: &Collector, recovery: &Recovery, rehearsals: &[Rehearsal]) -> RecoveryRow {
    let times = Times(collector);
    let Effect {
        backlogs,
        losses,
        offline_hub_minutes,
        failed_journeys,
        amplification,
        synchronisation,
    } = &recovery.effect;
    let harmed = recovery.onset.is_some();
    let alerts = rehearsals.iter().filter(|row| row.mark == recovery.mark);
    RecoveryRow {
        mark: collector.plan().mark_name(recovery.mark).to_owned(),
        onset_us: recovery.onset.map(|at| times.us(at)),
        alerts: alerts
            .map(|alert| self::alert(&times, recovery, alert))
            .collect(),
        collapses: recovery
            .collapses
            .iter()
            .map(|collapse| CollapseRow {
                at_us: times.us(collapse.at),
                signal: collapse.signal.clone(),
                back_us: collapse.back.map(|at| times.us(at)),
            })
            .collect(),
        backlogs: backlogs
            .iter()
            .map(|backlog| self::backlog(&times, backlog))
            .collect(),
        losses: losses
            .iter()
            .map(|loss| LossRow {
                signal: loss.signal.clone(),
                lost_successes: loss.lost_successes,
                area: loss.area,
                nadir: loss.nadir,
                nadir_us: times.us(loss.nadir_at),
                rapidity_per_second: loss.rapidity_per_second,
            })
            .collect(),
        offline_hub_minutes: *offline_hub_minutes,
        hubs_affected: collector.affected_hubs(recovery.mark).filter(|_| harmed),
        riders_affected: *failed_journeys,
        amplification: amplification.map(|row| row.overall),
        amplification_worst: amplification.map(|row| row.worst),
        amplification_worst_us: amplification.map(|row| times.us(row.worst_at)),
        synchronisation: synchronisation.map(|row| row.index),
        phase_concentration: synchronisation.and_then(|row| row.phase_concentration),
        reconnects: recovery.reconnects.map(|reconnects| ReconnectRow {
            times: reconnects.times,
            baseline_per_second: reconnects.baseline_per_second,
            peak_per_second: reconnects.peak_per_second,
            extra_per_hub: reconnects.extra_per_hub,
            above_double_seconds: reconnects.above_double_seconds,
        }),
        signals: recovery
            .signals
            .iter()
            .map(|signal| self::signal(&times, signal))
            .collect(),
        ..outcome(&times, recovery)
    }
}

/// What the outcome says; everything else is empty.
fn outcome(times: &Times<'_>, recovery: &Recovery) -> RecoveryRow {
    let mut row = RecoveryRow {
        text: outcome_text(times, &recovery.outcome) + &afterwards(times, recovery),
        ..RecoveryRow::default()
    };
    let outcome = match &recovery.outcome {
        RecoveryOutcome::NotNeeded => {
            (row.from_injection_us, row.from_removal_us) = (Some(0), Some(0));
            "unharmed"
        }
        RecoveryOutcome::Recovered {
            at,
            from_injection_us,
            from_removal_us,
            declared,
        } => {
            row.from_injection_us = Some(*from_injection_us);
            row.from_removal_us = Some(*from_removal_us);
            row.recovered_us = Some(times.us(*at));
            row.declared_us = Some(times.us(*declared));
            "recovered"
        }
        RecoveryOutcome::Recovering {
            within_us, eta_us, ..
        } => {
            (row.not_within_us, row.eta_us) = (Some(*within_us), Some(*eta_us));
            "recovering"
        }
        RecoveryOutcome::Metastable { within_us, .. } => {
            row.not_within_us = Some(*within_us);
            "metastable"
        }
        RecoveryOutcome::Censored { at_least_us, .. } => {
            row.not_within_us = Some(*at_least_us);
            "censored"
        }
        RecoveryOutcome::Undecided => "undecided",
    };
    row.outcome = outcome.to_owned();
    row
}

fn outcome_text(times: &Times<'_>, outcome: &RecoveryOutcome) -> String {
    let time = |us: u64| figures::time(us as f64);
    match outcome {
        RecoveryOutcome::NotNeeded => "no signal left its band".to_owned(),
        RecoveryOutcome::Recovered {
            at,
            from_injection_us,
            from_removal_us,
            declared,
        } => format!(
            "recovered at {}, {} after its begin and {} after its end (held to {})",
            times.clock(*at),
            time(*from_injection_us),
            time(*from_removal_us),
            times.clock(*declared)
        ),
        RecoveryOutcome::Recovering {
            within_us,
            eta_us,
            stock,
        } => format!(
            "RECOVERING: not back {} after its end; {stock} gets better, and takes {} more at the last rate",
            time(*within_us),
            time(*eta_us)
        ),
        RecoveryOutcome::Metastable {
            within_us,
            signal,
            goodput,
        } => format!(
            "METASTABLE: {} after its end, under no more load than before, {signal} has {} of its goodput and nothing drains; it does not come back by itself",
            time(*within_us),
            figures::share(*goodput)
        ),
        RecoveryOutcome::Censored { why, at_least_us } => format!(
            "at least {} after its end, not known further: {why}",
            time(*at_least_us)
        ),
        RecoveryOutcome::Undecided => "the run ended before it could be told".to_owned(),
    }
}

/// What came after the recovery.
fn afterwards(times: &Times<'_>, recovery: &Recovery) -> String {
    let mut text = String::new();
    for collapse in &recovery.collapses {
        let back = collapse.back.map_or_else(
            || "not back".to_owned(),
            |at| format!("back at {}", times.clock(at)),
        );
        let at = times.clock(collapse.at);
        text += &format!("; COLLAPSED AGAIN at {at} ({}), {back}", collapse.signal);
    }
    let fluttered = recovery
        .left_again
        .filter(|_| recovery.collapses.is_empty());
    if let Some(at) = fluttered {
        text += &format!("; left its band again at {}", times.clock(at));
    }
    text
}

fn backlog(times: &Times<'_>, backlog: &Backlog) -> BacklogRow {
    BacklogRow {
        backlog: backlog.name.clone(),
        baseline: backlog.baseline,
        peak: backlog.peak,
        peak_us: times.us(backlog.peak_at),
        turned_us: backlog.turned.map(|at| times.us(at)),
        drained_us: backlog.drained.map(|at| times.us(at)),
        drain_us: backlog.drain_us,
        at_end: backlog.at_end,
    }
}

fn alert(times: &Times<'_>, recovery: &Recovery, alert: &Rehearsal) -> AlertRow {
    let since = |from: Offset| {
        let fired = alert.fired?;
        u64::try_from(fired.since(from).as_micros()).ok()
    };
    AlertRow {
        alert: alert.name.clone(),
        rule: alert.rule.clone(),
        fired_us: alert.fired.map(|at| times.us(at)),
        after_injection_us: since(recovery.begin),
        after_onset_us: recovery.onset.and_then(since),
        before: alert.before,
    }
}

fn signal(times: &Times<'_>, signal: &SignalRecovery) -> SignalRow {
    let band = signal.band;
    SignalRow {
        signal: signal.name.clone(),
        text: signal_text(times, signal),
        baseline: band.map(|band| band.baseline.median),
        deviation: band.map(|band| band.baseline.deviation),
        enter: band.map(|band| band.enter),
        leave: band.map(|band| band.leave),
        onset_us: signal.onset.map(|at| times.us(at)),
        recovered_us: signal.recovered.map(|at| times.us(at)),
        worst: signal.worst.map(|(worst, _)| worst),
        worst_us: signal.worst.map(|(_, at)| times.us(at)),
        bad_seconds: signal.bad_seconds,
    }
}

fn signal_text(times: &Times<'_>, signal: &SignalRecovery) -> String {
    if signal.band.is_none() {
        return "not judged: too few quiet seconds".to_owned();
    }
    let Some(onset) = signal.onset else {
        return "stayed in its band".to_owned();
    };
    let back = signal.recovered.map_or_else(
        || "not back".to_owned(),
        |at| format!("back at {}", times.clock(at)),
    );
    format!(
        "out of its band at {}, {back}, {} s outside",
        times.clock(onset),
        signal.bad_seconds
    )
}

/// The recovery part of the Markdown form: a table of times, and under it what each mark did.
pub(super) fn section(report: &Report, text: &mut String) {
    let clock = |us: Option<i64>| {
        us.map_or_else(
            || "-".to_owned(),
            |us| figures::clock(us.div_euclid(1_000_000)),
        )
    };
    let time = |us: Option<u64>| us.map_or_else(|| "-".to_owned(), |us| figures::time(us as f64));
    if report.recoveries.is_empty() {
        return;
    }
    let rows = report.recoveries.iter().map(|row| {
        let first = row
            .alerts
            .iter()
            .filter_map(|alert| alert.after_injection_us);
        vec![
            row.mark.clone(),
            row.outcome.clone(),
            clock(row.onset_us),
            time(first.min()),
            clock(row.recovered_us),
            time(row.from_injection_us),
            time(row.from_removal_us),
        ]
    });
    let heading = [
        "after",
        "outcome",
        "onset",
        "first alert after",
        "recovered",
        "from its begin",
        "from its end",
    ];
    super::markdown::table(text, &heading, rows);
    for row in &report.recoveries {
        for (about, sentence) in sentences(row) {
            let _ = writeln!(text, "- {}, {about}: {sentence}", row.mark);
        }
    }
    for row in &report.critical {
        for sentence in super::critical::sentences(row) {
            let _ = writeln!(text, "- critical number, {sentence}");
        }
    }
    for sentence in super::interference::sentences(report) {
        let _ = writeln!(text, "- others, {sentence}");
    }
}

/// The sentences under a recovery, each with what it is about: the same for every form.
pub(super) fn sentences(row: &RecoveryRow) -> Vec<(&'static str, String)> {
    let signals = row.signals.iter();
    let told = signals.filter(|signal| signal.text != "stayed in its band");
    let mut lines: Vec<(&'static str, String)> = told
        .map(|signal| ("signal", format!("{}: {}", signal.signal, signal.text)))
        .collect();
    lines.extend(
        row.backlogs
            .iter()
            .map(|row| ("backlog", backlog_text(row))),
    );
    lines.extend(row.losses.iter().map(|row| ("loss", loss_text(row))));
    lines.extend(affected_text(row).map(|text| ("affected", text)));
    lines.extend(attempts_text(row).map(|text| ("attempts", text)));
    if let Some(reconnects) = &row.reconnects {
        lines.push(("reconnects", text::reconnects(reconnects)));
    }
    lines.extend(step_text(row).map(|text| ("in step", text)));
    lines.extend(row.alerts.iter().map(|alert| ("alert", alert_text(alert))));
    lines
}

fn loss_text(row: &LossRow) -> String {
    let lost = row
        .lost_successes
        .map(|lost| format!(", {} successes lost", figures::number(lost.round())));
    format!(
        "{}: at worst {} of before, at {}; {} missing on average{}",
        row.signal,
        figures::share(row.nadir),
        figures::clock(row.nadir_us.div_euclid(1_000_000)),
        figures::share(row.area),
        lost.unwrap_or_default()
    )
}

/// Who felt it; nothing where nothing was felt.
fn affected_text(row: &RecoveryRow) -> Option<String> {
    row.onset_us?;
    let hubs = row
        .hubs_affected
        .map(|hubs| format!("{} different hubs lost a session", figures::count(hubs)));
    let minutes = row
        .offline_hub_minutes
        .map(|minutes| format!("{} hub-minutes offline", figures::number(minutes)));
    let riders = row
        .riders_affected
        .filter(|riders| *riders > 0)
        .map(|riders| format!("{} riders did not get through", figures::count(riders)));
    let known: Vec<String> = [hubs, minutes, riders].into_iter().flatten().collect();
    (!known.is_empty()).then(|| known.join(", "))
}

fn attempts_text(row: &RecoveryRow) -> Option<String> {
    Some(format!(
        "{} for each action, worst 10 s {} at {}",
        figures::number(row.amplification?),
        figures::number(row.amplification_worst?),
        figures::clock(row.amplification_worst_us?.div_euclid(1_000_000))
    ))
}

fn step_text(row: &RecoveryRow) -> Option<String> {
    let index = figures::number(row.synchronisation?);
    let phase = row.phase_concentration.map(|phase| {
        format!(
            ", concentration at the retry period {}",
            figures::number(phase)
        )
    });
    Some(format!(
        "attempts to connect vary {index} times as much as chance does{}",
        phase.unwrap_or_default()
    ))
}

fn backlog_text(row: &BacklogRow) -> String {
    let clock = |us: Option<i64>| {
        us.map_or_else(
            || "never".to_owned(),
            |us| figures::clock(us.div_euclid(1_000_000)),
        )
    };
    let end = match row.drain_us {
        Some(drain) => format!(
            "drained at {}, {} after the end",
            clock(row.drained_us),
            figures::time(drain as f64)
        ),
        None => format!("not drained, {} at last", figures::number(row.at_end)),
    };
    format!(
        "{}: peak {} at {}, {}, {end}",
        row.backlog,
        figures::number(row.peak),
        clock(Some(row.peak_us)),
        row.turned_us.map_or_else(
            || "never turned".to_owned(),
            |us| format!("turned at {}", clock(Some(us)))
        ),
    )
}

fn alert_text(row: &AlertRow) -> String {
    let time = |us: Option<u64>| us.map_or_else(|| "-".to_owned(), |us| figures::time(us as f64));
    match row.fired_us {
        _ if row.before => format!("{} held already when it began", row.alert),
        None => format!("{} would never have fired ({})", row.alert, row.rule),
        Some(at) => {
            let onset = row
                .after_onset_us
                .map(|_| format!(", {} after the onset", time(row.after_onset_us)));
            format!(
                "{} would have fired at {}, {} after its begin{}",
                row.alert,
                figures::clock(at.div_euclid(1_000_000)),
                time(row.after_injection_us),
                onset.unwrap_or_default()
            )
        }
    }
}
