//! Who takes part: groups of hubs, riders and issuers.

use super::identity::Rows;
use super::places::Choice;
use crate::arrivals::Schedule;
use crate::retry::Retry;
use std::time::Duration;

/// A group of like hubs.
#[derive(Debug, Clone, PartialEq)]
pub struct HubGroup {
    pub name: String,
    /// Row in `Target::devices`.
    pub device: usize,
    pub count: u32,
    /// The first connects are spread evenly over this time.
    pub connect_over: Duration,
    pub keep_alive: Duration,
    /// Of one attempt: connect, CONNACK and SUBACK together; also of PINGRESP and PUBACK.
    pub timeout: Duration,
    pub telemetry: Option<Telemetry>,
    /// How long the device takes to act on a command before it answers.
    pub actuation: Duration,
    pub reconnect: Reconnect,
    /// The identities of its hubs, if the device has any.
    pub identity: Option<Rows>,
}

impl HubGroup {
    /// The serial number of hub `index`: the same in every run, distinct between groups. A column `serial` of its identities
    /// wins over one of our own.
    #[must_use]
    pub fn serial(&self, index: u64) -> String {
        self.column(index, "serial")
            .map_or_else(|| format!("{}-{index:06}", self.name), str::to_owned)
    }

    /// Appends what `<name>` stands for: `serial` or a column of its identities. False if nobody knows it.
    pub fn placeholder(&self, index: u64, name: &str, out: &mut String) -> bool {
        match self.column(index, name) {
            Some(text) => out.push_str(text),
            None if name == "serial" => out.push_str(&self.serial(index)),
            None => return false,
        }
        true
    }

    /// What a column of its identities holds for hub `index`; `None` if there is no such column.
    #[must_use]
    pub fn column(&self, index: u64, column: &str) -> Option<&str> {
        self.identity.as_ref()?.value(index, column)
    }
}

/// What a hub publishes unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Telemetry {
    pub every: Duration,
    pub bytes: usize,
}

/// How a hub comes back after its session ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reconnect {
    pub retry: Retry,
    /// The first reconnect after a loss waits uniformly in [0, `first`).
    pub first: Duration,
    /// The backoff starts anew only after a session has lived this long.
    pub healthy_after: Duration,
}

/// A group of riders that start a journey by a schedule and do not wait for each other.
#[derive(Debug, Clone, PartialEq)]
pub struct RiderGroup {
    pub name: String,
    /// Row in `Target::journeys`.
    pub journey: usize,
    pub arrivals: Schedule,
    /// Of one attempt of one step.
    pub timeout: Duration,
    pub retry: Retry,
    /// Riders that wait for an answer at the same time; who thinks or waits to retry does not count.
    pub max_in_flight: u32,
    /// The accounts of its riders, if the journey has any.
    pub identity: Option<Rows>,
    /// How they are spread over the places of the journey, if it has any.
    pub places: Choice,
    /// Whether every attempt of an intended action carries the same `<intent>`. Without it, headers that hold it are left out,
    /// and it is another one for each attempt elsewhere.
    pub idempotency: bool,
}

/// A group that sends commands to a group of hubs.
#[derive(Debug, Clone, PartialEq)]
pub struct IssuerGroup {
    pub name: String,
    /// Row in `Target::commands`.
    pub command: usize,
    /// Row in `Plan::hubs`.
    pub to: usize,
    pub arrivals: Schedule,
    /// An answer within this time after the due time is in time.
    pub in_time: Duration,
    /// The command's time to live, from the due time.
    pub ttl: Duration,
    pub timeout: Duration,
    pub retry: Retry,
    pub max_in_flight: u32,
    /// Whether every attempt of a command carries the same id.
    pub idempotency: bool,
}
