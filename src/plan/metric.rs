//! The catalogue: what expectations may measure, and what a running test exports. One table for the grammar, the exporter and
//! `rushhour metrics`.

mod families;

pub use families::{FAMILIES, Family, FamilyKind, family};

use std::fmt::Write as _;

/// One metric of expectations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricRow {
    /// As it stands in a line.
    pub word: &'static str,
    /// Whose it is: what stands before it in a line; empty for what is of the whole run.
    pub of: &'static str,
    /// What its limit may be.
    pub unit: &'static str,
    /// Whether p50, p95, p99, p99.9, mean or max must follow.
    pub stat: bool,
    pub means: &'static str,
    /// The exported family that shows the same while the run goes on; empty where only the end can tell.
    pub exported: &'static str,
}

const STEP: &str = "a step, span or journey, `connect`";
const TIMED: &str = "a step or span, `connect`, an issuer group, `command`";
const COMMANDS: &str = "`commands` or an issuer group";
const HUBS: &str = "`hubs` or a group";
const POOL: &str = "`pool` or a probe that plays pool";
const BROKER: &str = "`broker` or a probe that plays broker";
const QUEUE: &str = "`queue` or a probe that plays queue";
const DOCKS: &str = "`returns` or a group of docks";

const fn row(
    word: &'static str,
    of: &'static str,
    unit: &'static str,
    means: &'static str,
    exported: &'static str,
) -> MetricRow {
    MetricRow {
        word,
        of,
        unit,
        stat: false,
        means,
        exported,
    }
}

const fn spread(
    word: &'static str,
    of: &'static str,
    means: &'static str,
    exported: &'static str,
) -> MetricRow {
    MetricRow {
        stat: true,
        ..row(word, of, "time", means, exported)
    }
}

/// Every metric of expectations, in the order of FORMATS.
pub const METRICS: &[MetricRow] = &[
    row(
        "success",
        STEP,
        "%",
        "ok among those that ended, declined ones left out",
        "rushhour_actions_ended_total",
    ),
    row(
        "declined",
        STEP,
        "%",
        "refused by the target's own rules among those that ended",
        "rushhour_actions_ended_total",
    ),
    row(
        "unfinished",
        STEP,
        "%",
        "started and not ended",
        "rushhour_actions_in_flight",
    ),
    spread(
        "latency",
        TIMED,
        "from the due time to the end",
        "rushhour_action_latency_seconds",
    ),
    spread(
        "service",
        TIMED,
        "from the start to the end",
        "rushhour_action_service_seconds",
    ),
    row(
        "attempts per",
        "a step or journey, `connect`, an issuer group (after it)",
        "number",
        "tries ÷ intended actions",
        "rushhour_attempts_total",
    ),
    row(
        "in time",
        COMMANDS,
        "count or %",
        "acknowledged within the group's `in_time`",
        "rushhour_commands",
    ),
    row(
        "late",
        COMMANDS,
        "count or %",
        "acknowledged later, within the time to live",
        "rushhour_commands",
    ),
    row(
        "expired",
        COMMANDS,
        "count or %",
        "reported as expired by the target",
        "rushhour_commands",
    ),
    row(
        "lost",
        "`commands`, an issuer group, `hubs`, `returns` or a group of either",
        "count or %",
        "accepted and never delivered; sessions lost; returns the target never booked",
        "rushhour_commands",
    ),
    row(
        "duplicated",
        "`commands`, `returns` or a group of either",
        "count or %",
        "delivered or booked more than once",
        "rushhour_commands_duplicated_total",
    ),
    row(
        "unexpected",
        COMMANDS,
        "count or %",
        "delivered and never due",
        "rushhour_commands_unexpected_total",
    ),
    row(
        "in doubt",
        "`commands`, `returns` or a group of either",
        "count or %",
        "sent without an answer, and nothing says what came of it",
        "rushhour_commands",
    ),
    row(
        "connected",
        HUBS,
        "count or %",
        "sessions that stand and are not stuck",
        "rushhour_hubs_connected",
    ),
    row(
        "refused",
        HUBS,
        "count or %",
        "attempts to connect that the target refused",
        "rushhour_hub_connects_refused_total",
    ),
    row(
        "throttled",
        HUBS,
        "count or %",
        "refused because there were too many at once",
        "rushhour_hub_connects_throttled_total",
    ),
    row(
        "stuck",
        HUBS,
        "count or %",
        "sessions that stand and get no acknowledgement",
        "rushhour_hubs_stuck",
    ),
    row(
        "connects",
        "`hubs`, a group; of connects also `broker` or a probe that plays broker",
        "/s or x baseline",
        "attempts to connect",
        "rushhour_hub_connects_total",
    ),
    row(
        "reconnects",
        "`hubs`, a group",
        "/s or x baseline",
        "attempts to connect after 0:00",
        "rushhour_hub_reconnects_total",
    ),
    spread(
        "wait",
        POOL,
        "time that requests wait for a connection; the larger of counters and Little's law",
        "rushhour_probe_wait_seconds",
    ),
    row(
        "waiting",
        POOL,
        "count",
        "requests that wait at the same time",
        "rushhour_probe_waiting",
    ),
    row(
        "saturation",
        POOL,
        "%",
        "connections lent out ÷ connections there may be, of the fullest instance",
        "rushhour_probe_saturation_ratio",
    ),
    row(
        "stalled",
        POOL,
        "time",
        "requests waited and none got a connection",
        "rushhour_probe_stalled_seconds_total",
    ),
    row(
        "timeouts",
        POOL,
        "count",
        "requests that gave up waiting",
        "rushhour_probe_timeouts_total",
    ),
    row(
        "acquires per request",
        POOL,
        "count",
        "connections taken for each HTTP request that was sent",
        "rushhour_probe_acquires_total",
    ),
    row(
        "connections",
        BROKER,
        "count",
        "sessions that stand, as the broker counts them",
        "rushhour_probe_connections",
    ),
    row(
        "disconnects",
        BROKER,
        "/s or x baseline",
        "sessions that ended, as the broker counts them",
        "rushhour_probe_disconnects_total",
    ),
    row(
        "takeovers",
        BROKER,
        "count",
        "sessions that a newer one of the same client id has ended",
        "rushhour_probe_takeovers_total",
    ),
    row(
        "dropped",
        BROKER,
        "count",
        "messages thrown away",
        "rushhour_probe_dropped_total",
    ),
    row(
        "depth",
        QUEUE,
        "count",
        "messages or jobs that wait",
        "rushhour_probe_depth",
    ),
    row(
        "age",
        QUEUE,
        "time",
        "age of the oldest of them",
        "rushhour_probe_age_seconds",
    ),
    row(
        "value",
        "a probe that plays value",
        "number",
        "what it read",
        "rushhour_probe_value",
    ),
    spread(
        "delay",
        DOCKS,
        "from the hand-over of a return to the target's booking",
        "",
    ),
    row(
        "stored",
        DOCKS,
        "count",
        "returns that docks hold",
        "rushhour_returns_stored",
    ),
    row(
        "active",
        DOCKS,
        "count",
        "trips that the target takes for active after their return",
        "",
    ),
    row(
        "recovery",
        "",
        "time",
        "from the end of a trigger or fault to the first moment from which all is well",
        "rushhour_recovery_seconds",
    ),
    row(
        "blind",
        "",
        "% or time",
        "without readings of the target",
        "rushhour_probe_blind_seconds",
    ),
    row(
        "stale",
        COMMANDS,
        "count or %",
        "seen by a ghost on a shard that their hub had left",
        "rushhour_stale_commands_total",
    ),
    row(
        "drain",
        "",
        "time",
        "from the end of a trigger or fault until the backlog is as before",
        "",
    ),
    row(
        "synchronisation",
        "",
        "number",
        "index of dispersion of retries per 100 ms",
        "",
    ),
    row(
        "critical share",
        "",
        "%",
        "the largest disconnect from which the target recovers by itself",
        "",
    ),
];

/// The whole catalogue, for a person.
#[must_use]
pub fn catalogue() -> String {
    let mut text = String::from(
        "Metrics of expectations: `NAME METRIC [p50|p95|p99|p99.9|mean|max] <= LIMIT [SCOPE]`\n\n",
    );
    for row in METRICS {
        let stat = if row.stat { " STAT" } else { "" };
        let _ = writeln!(text, "  {}{stat}  ({})", row.word, row.unit);
        let _ = writeln!(text, "      {}", row.means);
        if !row.of.is_empty() {
            let _ = writeln!(text, "      of {}", row.of);
        }
        if !row.exported.is_empty() {
            let _ = writeln!(text, "      while it runs: {}", row.exported);
        }
    }
    text.push_str("\nExported by `rushhour run --metrics ADDR`:\n\n");
    for family in FAMILIES {
        let _ = writeln!(text, "  {}  ({})", family.name, family.kind.name());
        let _ = writeln!(text, "      {}", family.help);
    }
    text
}
