//! MQTT brokers.

use super::{Row, counter, gauge};
use crate::plan::signal::Signal;

/// EMQX 5, `/api/v5/prometheus/stats`.
pub(super) const EMQX: &[Row] = &[
    gauge(Signal::Connections, "emqx_live_connections_count"),
    gauge(Signal::Connections, "emqx_connections_count"),
    counter(Signal::Connects, "emqx_client_connected"),
    counter(Signal::Connects, "emqx_client_connect"),
    counter(Signal::Disconnects, "emqx_client_disconnected"),
    counter(Signal::Takeovers, "emqx_session_takenover"),
    counter(Signal::Dropped, "emqx_delivery_dropped"),
    counter(Signal::Dropped, "emqx_messages_dropped"),
];

/// VerneMQ; its counters carry no `_total`.
pub(super) const VERNEMQ: &[Row] = &[
    gauge(Signal::Connections, "total_active_connections"),
    gauge(Signal::Connections, "active_mqtt_connections"),
    counter(Signal::Connects, "mqtt_connect_received"),
    counter(Signal::Connects, "socket_open"),
    counter(Signal::Disconnects, "socket_close"),
    counter(Signal::Dropped, "queue_message_drop"),
];

/// HiveMQ CE by its Prometheus extension, which exposes counters as gauges.
pub(super) const HIVEMQ: &[Row] = &[
    gauge(
        Signal::Connections,
        "com_hivemq_networking_connections_current",
    ),
    counter(
        Signal::Connects,
        "com_hivemq_messages_incoming_connect_count",
    ),
    counter(
        Signal::Disconnects,
        "com_hivemq_networking_connections_closed_total_count",
    ),
    counter(Signal::Dropped, "com_hivemq_messages_dropped_count"),
];

/// mosquitto's `$SYS` topics; connects are those that `probe::sys` finds behind the load average. An ended session and one that was
/// taken over can't be told apart here.
pub(super) const MOSQUITTO: &[Row] = &[
    gauge(Signal::Connections, "$SYS/broker/clients/connected"),
    counter(Signal::Connects, "connects"),
    counter(Signal::Disconnects, "disconnects"),
    gauge(Signal::Depth, "$SYS/broker/store/messages/count"),
    counter(Signal::Dropped, "$SYS/broker/publish/messages/dropped"),
];

/// RabbitMQ's Prometheus plugin. Connections of all protocols; what is aggregated may shrink without a restart.
pub(super) const RABBITMQ: &[Row] = &[
    gauge(Signal::Connections, "rabbitmq_connections"),
    counter(Signal::Connects, "rabbitmq_connections_opened_total"),
    counter(Signal::Disconnects, "rabbitmq_connections_closed_total"),
    gauge(Signal::Depth, "rabbitmq_queue_messages_ready"),
];

/// NATS, `/varz`.
pub(super) const NATS: &[Row] = &[
    gauge(Signal::Connections, "$.connections"),
    gauge(Signal::Max, "$.max_connections"),
    counter(Signal::Connects, "$.total_connections"),
];
