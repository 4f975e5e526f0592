//! What agents did: actions, hubs, commands, returns.

use super::{Labels, Page, Seen};
use crate::measure::totals::OperationTotal;
use crate::measure::{Account, State};
use crate::plan::OperationKind;

/// The run itself.
pub(super) fn run(seen: &Seen<'_>, page: &mut Page) {
    let plan = seen.collector.plan();
    let profile = plan.profile.display().to_string();
    let target = plan.target.file.display().to_string();
    let seed = plan.seed.to_string();
    let info = vec![
        ("run", seen.run),
        ("profile", profile.as_str()),
        ("target", target.as_str()),
        ("seed", seed.as_str()),
        ("version", env!("CARGO_PKG_VERSION")),
    ];
    page.family("rushhour_run_info", [(info, 1.0)]);
    let marks = seen.collector.marks();
    let end = seen.collector.series().end();
    if let Some(zero) = marks.zero {
        let time = end as f64 - zero.second() as f64;
        page.family("rushhour_run_time_seconds", [(Vec::new(), time)]);
        let loads = time >= 0.0
            && marks
                .load_end
                .is_none_or(|load_end| end <= load_end.second());
        page.family(
            "rushhour_load_active",
            [(Vec::new(), f64::from(u8::from(loads)))],
        );
    }
}

/// Steps, journeys, connects, commands: everything that is measured by name.
pub(super) fn actions(seen: &Seen<'_>, page: &mut Page) {
    let plan = seen.collector.plan();
    let rows = || {
        plan.operations
            .iter()
            .zip(&seen.collector.totals().operations)
    };
    let labels = |row: usize| -> Labels<'_> {
        let operation = &plan.operations[row];
        vec![
            ("group", operation.group.as_str()),
            ("action", operation.name.as_str()),
            ("kind", kind(operation.kind)),
        ]
    };
    let each = |value: &dyn Fn(usize) -> f64| {
        let samples = (0..plan.operations.len()).map(|row| (labels(row), value(row)));
        samples.collect::<Vec<_>>()
    };
    let totals = &seen.collector.totals().operations;
    let started = each(&|row| totals[row].started as f64);
    page.family("rushhour_actions_started_total", started);
    let ended = rows().enumerate().flat_map(|(row, (_, total))| {
        let outcomes = [
            ("ok", total.ok),
            ("declined", total.declined),
            ("failed", total.failed),
            ("timed_out", total.timed_out),
        ];
        outcomes.map(|(outcome, count)| {
            let mut labels = labels(row);
            labels.push(("outcome", outcome));
            (labels, count as f64)
        })
    });
    page.family("rushhour_actions_ended_total", ended.collect::<Vec<_>>());
    let in_flight = each(&|row| totals[row].unfinished() as f64);
    page.family("rushhour_actions_in_flight", in_flight);
    let attempts = each(&|row| totals[row].attempted as f64);
    page.family("rushhour_attempts_total", attempts);
    let requests: u64 = rows()
        .filter(|(operation, _)| plan.asks_over_http(operation.kind))
        .map(|(_, total)| total.attempted + total.continued)
        .sum();
    if rows().any(|(operation, _)| plan.asks_over_http(operation.kind)) {
        page.family("rushhour_requests_total", [(Vec::new(), requests as f64)]);
    }
    let timed = |row: &usize| totals[*row].latency.count() > 0;
    let rows: Vec<usize> = (0..totals.len()).filter(timed).collect();
    page.histograms(
        "rushhour_action_latency_seconds",
        rows.iter().map(|row| (labels(*row), &totals[*row].latency)),
    );
    page.histograms(
        "rushhour_action_service_seconds",
        rows.iter().map(|row| (labels(*row), &totals[*row].service)),
    );
}

fn kind(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Find { .. } => "find",
        OperationKind::Connect { .. } => "connect",
        OperationKind::Handshake { .. } => "handshake",
        OperationKind::Telemetry { .. } => "telemetry",
        OperationKind::Answer { .. } => "answer",
        OperationKind::Reauthenticate { .. } => "reauthenticate",
        OperationKind::Step { .. } => "step",
        OperationKind::Journey { .. } => "journey",
        OperationKind::Span { .. } => "span",
        OperationKind::Closing { .. } => "closing",
        OperationKind::Issue { .. } => "issue",
        OperationKind::Command { .. } => "command",
        OperationKind::Status { .. } => "status",
        OperationKind::Return { .. } => "return",
        OperationKind::Token { .. } => "token",
    }
}

/// Sessions of hubs.
pub(super) fn hubs(seen: &Seen<'_>, page: &mut Page) {
    let plan = seen.collector.plan();
    let totals = seen.collector.totals();
    let each = |value: &dyn Fn(usize) -> f64| {
        let groups = plan.hubs.iter().enumerate();
        let samples = groups.map(|(row, group)| (vec![("group", group.name.as_str())], value(row)));
        samples.collect::<Vec<_>>()
    };
    page.family(
        "rushhour_hubs",
        each(&|row| f64::from(plan.hubs[row].count)),
    );
    let standing = each(&|row| totals.hubs[row].standing() as f64);
    page.family("rushhour_hubs_connected", standing);
    let stuck = each(&|row| totals.hubs[row].standing_stuck() as f64);
    page.family("rushhour_hubs_stuck", stuck);
    let connects = each(&|row| totals.hubs[row].connects as f64);
    page.family("rushhour_hub_connects_total", connects);
    let reconnects = each(&|row| totals.hubs[row].reconnects as f64);
    page.family("rushhour_hub_reconnects_total", reconnects);
    let of_connects = |of: &dyn Fn(&OperationTotal) -> u64| {
        each(&|row| {
            let connect = plan.operation(OperationKind::Connect { hubs: row });
            let total = connect.and_then(|id| totals.operations.get(usize::from(id.0)));
            total.map_or(0.0, |total| of(total) as f64)
        })
    };
    let refused = of_connects(&|total| total.refused);
    page.family("rushhour_hub_connects_refused_total", refused);
    let throttled = of_connects(&|total| total.throttled);
    page.family("rushhour_hub_connects_throttled_total", throttled);
    let lost = plan
        .hubs
        .iter()
        .zip(&totals.losses)
        .flat_map(|(group, causes)| {
            causes.iter().map(|(cause, count)| {
                let labels = vec![("group", group.name.clone()), ("cause", cause.to_string())];
                (labels, *count as f64)
            })
        });
    let lost: Vec<_> = lost.collect();
    page.family(
        "rushhour_hub_sessions_lost_total",
        lost.iter().map(|(labels, count)| {
            let labels = labels.iter().map(|(name, text)| (*name, text.as_str()));
            (labels.collect(), *count)
        }),
    );
    let watched = plan.hubs.iter().zip(&seen.collector.places().groups);
    let watched = watched.filter(|(group, _)| plan.target.devices[group.device].ghost);
    page.family(
        "rushhour_stale_commands_total",
        watched.map(|(group, places)| {
            (
                vec![("group", group.name.as_str())],
                places.stale.seen as f64,
            )
        }),
    );
}

/// The account of commands and of returns.
pub(super) fn commands(seen: &Seen<'_>, page: &mut Page) {
    let plan = seen.collector.plan();
    let accounts: Vec<_> = (0..plan.issuers.len())
        .map(|row| {
            (
                plan.issuers[row].name.as_str(),
                seen.collector.ledger().total(row),
            )
        })
        .collect();
    let of = |value: &dyn Fn(&Account) -> u64| {
        let each = accounts.iter();
        let samples = each.map(|(group, account)| (vec![("group", *group)], value(account) as f64));
        samples.collect::<Vec<_>>()
    };
    page.family("rushhour_commands_due_total", of(&|account| account.due));
    page.family(
        "rushhour_commands",
        accounts.iter().flat_map(|(group, account)| {
            State::ALL.map(|state| {
                let labels = vec![("group", *group), ("state", state.name())];
                (labels, account.of(state) as f64)
            })
        }),
    );
    page.family(
        "rushhour_commands_duplicated_total",
        of(&|account| account.duplicated),
    );
    page.family(
        "rushhour_commands_unexpected_total",
        of(&|account| account.unexpected),
    );
    let last = seen.collector.series().end().checked_sub(1);
    let last = last.and_then(|second| seen.collector.series().get(second));
    page.family(
        "rushhour_returns_stored",
        plan.docks.iter().enumerate().filter_map(|(row, group)| {
            let stored = last?.docks.get(row)?.stored;
            Some((vec![("group", group.name.as_str())], f64::from(stored)))
        }),
    );
}
