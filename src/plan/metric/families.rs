//! What a running test exports.

/// How an exported family moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FamilyKind {
    Counter,
    Gauge,
    Histogram,
}

impl FamilyKind {
    /// The word of Prometheus' text format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FamilyKind::Counter => "counter",
            FamilyKind::Gauge => "gauge",
            FamilyKind::Histogram => "histogram",
        }
    }
}

/// One exported family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    pub name: &'static str,
    pub kind: FamilyKind,
    pub help: &'static str,
}

/// The family of this name.
#[must_use]
pub fn family(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.name == name)
}

const fn counter(name: &'static str, help: &'static str) -> Family {
    Family {
        name,
        kind: FamilyKind::Counter,
        help,
    }
}

const fn gauge(name: &'static str, help: &'static str) -> Family {
    Family {
        name,
        kind: FamilyKind::Gauge,
        help,
    }
}

const fn histogram(name: &'static str, help: &'static str) -> Family {
    Family {
        name,
        kind: FamilyKind::Histogram,
        help,
    }
}

/// Everything that `run --metrics` exports, in the order of the page.
pub const FAMILIES: &[Family] = &[
    gauge("rushhour_run_info", "What runs; always 1."),
    gauge(
        "rushhour_run_time_seconds",
        "Time since 0:00, which is when every group stands; negative before.",
    ),
    gauge(
        "rushhour_load_active",
        "1 from 0:00 to the end of the load.",
    ),
    counter(
        "rushhour_actions_started_total",
        "Actions started, by what they are: steps, journeys, connects, commands.",
    ),
    counter(
        "rushhour_actions_ended_total",
        "Actions that ended, by how.",
    ),
    gauge(
        "rushhour_actions_in_flight",
        "Actions that have started and not ended.",
    ),
    counter(
        "rushhour_attempts_total",
        "Tries of actions; more than one for an action is a retry.",
    ),
    counter(
        "rushhour_requests_total",
        "HTTP requests of riders, issuers and docks.",
    ),
    histogram(
        "rushhour_action_latency_seconds",
        "From the due time of an action to its end.",
    ),
    histogram(
        "rushhour_action_service_seconds",
        "From the start of an action to its end.",
    ),
    gauge("rushhour_hubs", "Hubs of the group."),
    gauge(
        "rushhour_hubs_connected",
        "Hubs whose session stands and is not stuck.",
    ),
    gauge(
        "rushhour_hubs_stuck",
        "Hubs whose session stands and gets no acknowledgement.",
    ),
    counter("rushhour_hub_connects_total", "Attempts to connect."),
    counter(
        "rushhour_hub_reconnects_total",
        "Attempts to connect after 0:00.",
    ),
    counter(
        "rushhour_hub_connects_refused_total",
        "Attempts to connect that the target refused.",
    ),
    counter(
        "rushhour_hub_connects_throttled_total",
        "Attempts to connect refused because there were too many at once.",
    ),
    counter(
        "rushhour_hub_sessions_lost_total",
        "Sessions lost, by cause.",
    ),
    counter(
        "rushhour_stale_commands_total",
        "Commands that arrived where their hub no longer was.",
    ),
    counter("rushhour_commands_due_total", "Commands that were due."),
    gauge(
        "rushhour_commands",
        "Commands by their state; a late step may still move one from state to state.",
    ),
    counter(
        "rushhour_commands_duplicated_total",
        "Deliveries beyond the first.",
    ),
    counter(
        "rushhour_commands_unexpected_total",
        "Deliveries of commands that were never due.",
    ),
    gauge("rushhour_returns_stored", "Returns that docks hold."),
    gauge(
        "rushhour_probe_up",
        "1 if the last round brought an answer of every instance.",
    ),
    gauge(
        "rushhour_probe_wait_seconds",
        "Mean wait for a connection over the last seconds: the larger of counters and Little's law.",
    ),
    gauge(
        "rushhour_probe_wait_p99_seconds",
        "99th percentile of the same, where the target exports one that reaches it.",
    ),
    gauge(
        "rushhour_probe_waiting",
        "Requests that wait for a connection.",
    ),
    gauge("rushhour_probe_in_use", "Connections lent out."),
    gauge("rushhour_probe_max", "Connections that there may be."),
    gauge(
        "rushhour_probe_saturation_ratio",
        "How full the fullest instance is.",
    ),
    gauge(
        "rushhour_probe_stalled",
        "1 while requests wait and none gets a connection.",
    ),
    counter(
        "rushhour_probe_stalled_seconds_total",
        "Time in which requests waited and none got a connection.",
    ),
    counter(
        "rushhour_probe_acquires_total",
        "Requests that got a connection.",
    ),
    counter(
        "rushhour_probe_timeouts_total",
        "Requests that gave up waiting.",
    ),
    gauge(
        "rushhour_probe_connections",
        "Sessions or connections that stand.",
    ),
    counter(
        "rushhour_probe_connects_total",
        "Sessions or connections opened, as the target counts them.",
    ),
    counter(
        "rushhour_probe_disconnects_total",
        "Sessions or connections that ended, as the target counts them.",
    ),
    counter(
        "rushhour_probe_takeovers_total",
        "Sessions that a newer one of the same client id has ended.",
    ),
    gauge("rushhour_probe_depth", "Messages or jobs that wait."),
    gauge("rushhour_probe_age_seconds", "Age of the oldest of them."),
    counter("rushhour_probe_dropped_total", "Messages thrown away."),
    gauge("rushhour_probe_value", "What a probe of a value reads."),
    gauge(
        "rushhour_probe_blind_seconds",
        "Time since 0:00 without a reading of every instance.",
    ),
    counter(
        "rushhour_probe_gaps_total",
        "Readings that did not come about, by reason.",
    ),
    gauge(
        "rushhour_probe_duration_seconds",
        "How long the last answer took, of the slowest instance.",
    ),
    gauge("rushhour_trigger_active", "1 while a trigger acts."),
    gauge("rushhour_fault_active", "1 while a fault acts."),
    gauge(
        "rushhour_recovered",
        "1 once the recovery from a trigger or fault is decided and good, 0 before.",
    ),
    gauge(
        "rushhour_recovery_seconds",
        "Time to recover from a trigger or fault, from its injection and from its removal.",
    ),
    histogram(
        "rushhour_generator_lag_seconds",
        "How late actions started: start less due time.",
    ),
    gauge(
        "rushhour_generator_cpu_ratio",
        "Processor time of this process since the start, 1 for one core.",
    ),
    gauge(
        "rushhour_generator_resident_bytes",
        "Memory of this process.",
    ),
    gauge(
        "rushhour_generator_open_files",
        "Files and sockets that this process has open.",
    ),
    gauge(
        "rushhour_generator_open_files_limit",
        "Files and sockets that this process may open.",
    ),
    counter(
        "rushhour_generator_lost_steps_total",
        "Steps of commands that did not fit and were counted instead.",
    ),
];
