//! The lab's settings: sizes and times of the small system, by name.
//!
//! The defaults scale the pool of the outages down to a laptop: 10 connections at 10 ms a query serve 1000 queries
//! a second, so that a thousand or two hubs are to this pool what millions were to the real one.

use serde::{Deserialize, Serialize};

/// Everything that `--set NAME=VALUE` can change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub pool_size: u64,
    pub pool_queue: u64,
    pub acquire_timeout_ms: u64,
    pub query_timeout_ms: u64,
    pub service_ms: u64,
    pub database_parallelism: u64,
    pub dispatch_workers: u64,
    pub dispatch_queue: u64,
    pub auth_expires_after_ms: u64,
    pub bikes: u64,
    pub max_connects_per_second: u64,
    pub server_keep_alive_s: u64,
    pub receive_maximum: u64,
    pub topic_alias_maximum: u64,
    pub maximum_packet_size: u64,
    pub session_expiry_max_s: u64,
    pub session_queue: u64,
    pub reauth_challenges: u64,
    pub rebalance_share: u64,
    pub shard_cache_s: u64,
    pub dispatch_reconnect_ms: u64,
    pub stations: u64,
    pub accounts: u64,
    pub unlock_ms: u64,
    pub status_pool_size: u64,
    pub gateway_attempts: u64,
    pub gateway_timeout_ms: u64,
    pub service_attempts: u64,
    pub return_delay_ms: u64,
    pub candidates: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            pool_size: 20,
            pool_queue: 4096,
            acquire_timeout_ms: 5000,
            query_timeout_ms: 10_000,
            service_ms: 10,
            database_parallelism: 64,
            dispatch_workers: 8,
            dispatch_queue: 20_000,
            auth_expires_after_ms: 100,
            bikes: 2000,
            max_connects_per_second: 0,
            server_keep_alive_s: 0,
            receive_maximum: 64,
            topic_alias_maximum: 10,
            maximum_packet_size: 65536,
            session_expiry_max_s: 3600,
            session_queue: 100,
            reauth_challenges: 1,
            rebalance_share: 30,
            shard_cache_s: 30,
            dispatch_reconnect_ms: 50,
            stations: 40,
            accounts: 1000,
            unlock_ms: 300,
            status_pool_size: 4,
            gateway_attempts: 2,
            gateway_timeout_ms: 10_000,
            service_attempts: 1,
            return_delay_ms: 200,
            candidates: 3,
        }
    }
}

/// One setting: its name, its range, what it means, and where it stands.
struct Setting {
    name: &'static str,
    range: std::ops::RangeInclusive<u64>,
    about: &'static str,
    place: fn(&mut Settings) -> &mut u64,
}

const KNOWN: [Setting; 30] = [
    Setting {
        name: "pool_size",
        range: 1..=1000,
        about: "connections to the database",
        place: |all| &mut all.pool_size,
    },
    Setting {
        name: "pool_queue",
        range: 0..=1_000_000,
        about: "requests that may wait for a connection; one more is refused at once",
        place: |all| &mut all.pool_queue,
    },
    Setting {
        name: "acquire_timeout_ms",
        range: 1..=600_000,
        about: "longest wait for a connection",
        place: |all| &mut all.acquire_timeout_ms,
    },
    Setting {
        name: "query_timeout_ms",
        range: 1..=600_000,
        about: "longest wait for the answer to a query; the connection is given up then",
        place: |all| &mut all.query_timeout_ms,
    },
    Setting {
        name: "service_ms",
        range: 0..=60_000,
        about: "time that every query takes in the database, beside its own",
        place: |all| &mut all.service_ms,
    },
    Setting {
        name: "database_parallelism",
        range: 1..=10_000,
        about: "queries that the embedded database serves at the same time",
        place: |all| &mut all.database_parallelism,
    },
    Setting {
        name: "dispatch_workers",
        range: 1..=1000,
        about: "workers that hand commands to shards",
        place: |all| &mut all.dispatch_workers,
    },
    Setting {
        name: "dispatch_queue",
        range: 1..=1_000_000,
        about: "commands that may stand in the dispatch queue; one more is refused at once",
        place: |all| &mut all.dispatch_queue,
    },
    Setting {
        name: "auth_expires_after_ms",
        range: 1..=600_000,
        about: "with slow-auth-expires-session: a check that takes longer ends the connection",
        place: |all| &mut all.auth_expires_after_ms,
    },
    Setting {
        name: "bikes",
        range: 1..=1_000_000,
        about: "bikes that riders can find",
        place: |all| &mut all.bikes,
    },
    Setting {
        name: "max_connects_per_second",
        range: 0..=1_000_000,
        about: "connects that a shard takes; more are refused with 0x9F, or code 3 in MQTT 3.1.1; 0 is no limit",
        place: |all| &mut all.max_connects_per_second,
    },
    Setting {
        name: "server_keep_alive_s",
        range: 0..=65_535,
        about: "keep-alive that MQTT 5 hubs are told to use; 0 leaves them theirs",
        place: |all| &mut all.server_keep_alive_s,
    },
    Setting {
        name: "receive_maximum",
        range: 1..=65_535,
        about: "QoS 1 messages that an MQTT 5 hub may have unacknowledged",
        place: |all| &mut all.receive_maximum,
    },
    Setting {
        name: "topic_alias_maximum",
        range: 0..=1000,
        about: "topic aliases that an MQTT 5 hub may use",
        place: |all| &mut all.topic_alias_maximum,
    },
    Setting {
        name: "maximum_packet_size",
        range: 128..=1_048_576,
        about: "longest packet that a hub may send, in bytes",
        place: |all| &mut all.maximum_packet_size,
    },
    Setting {
        name: "session_expiry_max_s",
        range: 0..=86_400,
        about: "longest time for which a shard keeps a session without a connection",
        place: |all| &mut all.session_expiry_max_s,
    },
    Setting {
        name: "session_queue",
        range: 1..=100_000,
        about: "messages that may wait for one hub; one more is not taken",
        place: |all| &mut all.session_queue,
    },
    Setting {
        name: "reauth_challenges",
        range: 0..=3,
        about: "challenges that a hub answers before its re-authentication is decided",
        place: |all| &mut all.reauth_challenges,
    },
    Setting {
        name: "rebalance_share",
        range: 0..=100,
        about: "percent of the connected hubs that a rebalance moves unless it is told otherwise",
        place: |all| &mut all.rebalance_share,
    },
    Setting {
        name: "shard_cache_s",
        range: 1..=3600,
        about: "with shard-map-ignores-generation: how long after its last use dispatch believes where a hub was",
        place: |all| &mut all.shard_cache_s,
    },
    Setting {
        name: "dispatch_reconnect_ms",
        range: 0..=60_000,
        about: "time that a dispatch worker needs to reconnect to a shard after a stale dispatch",
        place: |all| &mut all.dispatch_reconnect_ms,
    },
    Setting {
        name: "stations",
        range: 1..=100_000,
        about: "stations over which the bikes are spread",
        place: |all| &mut all.stations,
    },
    Setting {
        name: "accounts",
        range: 0..=1_000_000,
        about: "accounts with which riders can log in",
        place: |all| &mut all.accounts,
    },
    Setting {
        name: "unlock_ms",
        range: 0..=600_000,
        about: "time that a lock takes to open, from the answer to the trip's start",
        place: |all| &mut all.unlock_ms,
    },
    Setting {
        name: "status_pool_size",
        range: 1..=1000,
        about: "connections to the database that are kept for refreshes of stations' status",
        place: |all| &mut all.status_pool_size,
    },
    Setting {
        name: "gateway_attempts",
        range: 1..=20,
        about: "how often the gateway asks the station service until it answers without a failure",
        place: |all| &mut all.gateway_attempts,
    },
    Setting {
        name: "gateway_timeout_ms",
        range: 1..=600_000,
        about: "longest wait of the gateway for an answer of the station service",
        place: |all| &mut all.gateway_timeout_ms,
    },
    Setting {
        name: "service_attempts",
        range: 1..=20,
        about: "how often the station service tries to do something in the database",
        place: |all| &mut all.service_attempts,
    },
    Setting {
        name: "return_delay_ms",
        range: 0..=600_000,
        about: "time from taking a return to booking it",
        place: |all| &mut all.return_delay_ms,
    },
    Setting {
        name: "candidates",
        range: 1..=5,
        about: "with connection-per-candidate: bikes that an unlock looks at, each over a connection of its own",
        place: |all| &mut all.candidates,
    },
];

/// A `--set` that can't be followed.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    #[error("`--set {text}`: write it as NAME=VALUE, for example `--set pool_size=20`")]
    Form { text: String },
    #[error(
        "`--set {text}`: there is no setting `{name}`; known are\n{}",
        catalogue()
    )]
    Unknown { text: String, name: String },
    #[error("`--set {text}`: {name} takes a whole number from {low} to {high}")]
    Value {
        text: String,
        name: &'static str,
        low: u64,
        high: u64,
    },
}

fn catalogue() -> String {
    let mut defaults = Settings::default();
    let lines = KNOWN.map(|setting| {
        let default = *(setting.place)(&mut defaults);
        format!("  {} ({default}): {}", setting.name, setting.about)
    });
    lines.join("\n")
}

impl Settings {
    /// The defaults with each `NAME=VALUE` applied.
    ///
    /// # Errors
    /// The first text that isn't of that form, names no setting, or has a value outside the setting's range.
    pub fn with(texts: &[String]) -> Result<Settings, SettingError> {
        let mut settings = Settings::default();
        for text in texts {
            let (name, value) = text
                .split_once('=')
                .ok_or_else(|| SettingError::Form { text: text.clone() })?;
            let setting = KNOWN
                .iter()
                .find(|setting| setting.name == name)
                .ok_or_else(|| SettingError::Unknown {
                    text: text.clone(),
                    name: name.to_owned(),
                })?;
            let value = value
                .replace('_', "")
                .parse()
                .ok()
                .filter(|value| setting.range.contains(value));
            *(setting.place)(&mut settings) = value.ok_or_else(|| SettingError::Value {
                text: text.clone(),
                name: setting.name,
                low: *setting.range.start(),
                high: *setting.range.end(),
            })?;
        }
        Ok(settings)
    }
}
