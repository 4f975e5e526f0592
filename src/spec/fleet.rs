//! Groups of hubs, riders and issuers of a profile.

use super::fields::Fields;
use super::journey::row_of;
use super::places;
use super::policy;
use super::reader::At;
use super::schedule;
use super::target::Names;
use crate::arrivals::Schedule;
use crate::plan::dock::DockDevice;
use crate::plan::fleet::{HubGroup, IssuerGroup, Reconnect, RiderGroup, Telemetry};
use crate::plan::outlook::{needed_in_flight, worst_wait};
use crate::plan::places::Places;
use crate::plan::target::{Device, Journey, Target};
use crate::retry::{Backoff, Retry};
use std::path::Path;
use std::time::Duration;

/// Of one attempt of a rider or an issuer, unless the profile says otherwise.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Of a hub, unless the profile says otherwise.
const HUB_TIMEOUT: Duration = Duration::from_secs(10);
const KEEP_ALIVE: Duration = Duration::from_secs(60);
const CONNECT_OVER: Duration = Duration::from_secs(10);
/// Room under `max_in_flight` that even the smallest group gets.
const LEAST_IN_FLIGHT: u32 = 100;
const MOST_IN_FLIGHT: u32 = 1_000_000;
/// A topic's payload limit far below MQTT's 256 MiB.
const LARGEST_TELEMETRY: u64 = 1024 * 1024;
const LONGEST_KEEP_ALIVE: Duration = Duration::from_secs(65_535);

/// How a hub comes back unless the profile says otherwise.
const RECONNECT: Reconnect = Reconnect {
    retry: Retry::of(Backoff::FullJitter {
        base: Duration::from_secs(1),
        cap: Duration::from_secs(60),
        factor: 2.0,
    }),
    first: Duration::from_secs(5),
    healthy_after: Duration::from_secs(30),
};

/// What groups refer to.
pub(super) struct Around<'a> {
    pub target: &'a Target,
    pub names: &'a Names,
    pub seed: u64,
    pub duration: Duration,
    /// The profile: what its groups name lies beside it.
    pub file: &'a Path,
    /// Names of the hub groups, in the order of the file.
    pub hub_groups: &'a [String],
}

impl Around<'_> {
    /// The dock of a row of the names, if it could be read.
    pub fn dock(&self, row: usize) -> Option<&DockDevice> {
        let name = &self.names.docks[row];
        self.target.docks.iter().find(|dock| dock.name == *name)
    }

    /// The device of a row of the names, if it could be read.
    fn device(&self, row: usize) -> Option<&Device> {
        self.target
            .devices
            .iter()
            .find(|device| device.name == self.names.devices[row])
    }

    /// The journey of a row of the names, if it could be read.
    fn journey(&self, row: usize) -> Option<&Journey> {
        let name = &self.names.journeys[row];
        self.target
            .journeys
            .iter()
            .find(|journey| journey.name == *name)
    }

    /// The places to which that journey goes.
    fn places_of(&self, row: usize) -> Option<&Places> {
        let place = self.journey(row)?.place?;
        let name = &self.names.places[place];
        self.target
            .places
            .iter()
            .find(|places| places.name == *name)
    }
}

/// One entry of `hubs:`.
pub(super) fn hubs(name: &str, at: &At<'_>, around: &Around<'_>) -> Option<HubGroup> {
    let mut fields = at.fields()?;
    let device = fields
        .need("device")
        .and_then(|at| row_of(&at, &around.names.devices, "device", "devices"));
    let count = fields
        .need("count")
        .and_then(|at| at.count32(1..=10_000_000));
    let connect_over = fields
        .get("connect")
        .and_then(|at| over(&at))
        .unwrap_or(CONNECT_OVER);
    let keep_alive = fields
        .get("keep_alive")
        .and_then(|at| keep_alive(&at))
        .unwrap_or(KEEP_ALIVE);
    let timeout = fields
        .get("timeout")
        .and_then(|at| at.time())
        .unwrap_or(HUB_TIMEOUT);
    let telemetry_at = fields.get("telemetry");
    let telemetry = telemetry_at.as_ref().and_then(telemetry);
    if let (Some(at), Some(device)) = (telemetry_at, device.and_then(|row| around.device(row)))
        && device.telemetry.is_none()
    {
        at.wrong_key(
            format!("the device `{}` has no topic for telemetry", device.name),
            "add `telemetry: { topic: … }` to the device in the target file, or leave it out here",
        );
    }
    let actuation = fields
        .get("actuation")
        .and_then(|at| at.duration())
        .unwrap_or_default();
    let reconnect = fields
        .get("reconnect")
        .and_then(|at| reconnect(&at))
        .unwrap_or(RECONNECT);
    fields.finish(&["renew", "status"]);
    Some(HubGroup {
        name: name.to_owned(),
        device: device?,
        count: count?,
        connect_over,
        keep_alive,
        timeout,
        telemetry,
        actuation,
        reconnect,
        identity: None,
    })
}

fn over(at: &At<'_>) -> Option<Duration> {
    let mut fields = at.fields()?;
    let over = fields.need("over").and_then(|at| at.duration());
    fields.finish(&[]);
    over
}

/// MQTT counts keep-alives in whole seconds, 16 bits of them.
fn keep_alive(at: &At<'_>) -> Option<Duration> {
    let keep_alive = at.time()?;
    if keep_alive.subsec_micros() != 0 || keep_alive > LONGEST_KEEP_ALIVE {
        at.wrong(
            "MQTT knows keep-alives from 1 s to 65 535 s, in whole seconds",
            "write a number of seconds such as `60s`",
        );
        return None;
    }
    Some(keep_alive)
}

fn telemetry(at: &At<'_>) -> Option<Telemetry> {
    let mut fields = at.fields()?;
    let every = fields.need("every").and_then(|at| at.time());
    let bytes = fields
        .need("bytes")
        .and_then(|at| at.count(0..=LARGEST_TELEMETRY));
    fields.finish(&[]);
    Some(Telemetry {
        every: every?,
        bytes: usize::try_from(bytes?).ok()?,
    })
}

fn reconnect(at: &At<'_>) -> Option<Reconnect> {
    let mut fields = at.fields()?;
    let retry = policy::reconnect(&mut fields);
    let first = fields
        .get("first")
        .and_then(|at| at.duration())
        .unwrap_or(RECONNECT.first);
    let healthy_after = fields
        .get("healthy_after")
        .and_then(|at| at.duration())
        .unwrap_or(RECONNECT.healthy_after);
    fields.finish(&[]);
    Some(Reconnect {
        retry: retry?,
        first,
        healthy_after,
    })
}

/// `timeout`, `retry`, `arrivals`, `max_in_flight`: what riders and issuers have in common.
struct Calls {
    arrivals: Option<Schedule>,
    timeout: Duration,
    retry: Retry,
    max_in_flight: Option<u32>,
}

fn calls(fields: &mut Fields<'_>, around: &Around<'_>, stream: &str) -> Calls {
    let arrivals = fields
        .need("arrivals")
        .and_then(|at| schedule::arrivals(&at, around, stream));
    let timeout = fields
        .get("timeout")
        .and_then(|at| at.time())
        .unwrap_or(TIMEOUT);
    let retry = fields
        .get("retry")
        .and_then(|at| policy::retry(&at))
        .unwrap_or(Retry::NEVER);
    let max_in_flight = fields
        .get("max_in_flight")
        .and_then(|at| at.count32(1..=MOST_IN_FLIGHT));
    Calls {
        arrivals,
        timeout,
        retry,
        max_in_flight,
    }
}

impl Calls {
    /// What is given, or the peak rate times the worst wait of one step.
    fn max_in_flight(&self, give_up: Option<Duration>) -> u32 {
        let needed = self.arrivals.as_ref().map_or(0, |arrivals| {
            needed_in_flight(arrivals, worst_wait(self.timeout, &self.retry, give_up))
        });
        let needed = u32::try_from(needed).unwrap_or(MOST_IN_FLIGHT);
        self.max_in_flight
            .unwrap_or_else(|| needed.clamp(LEAST_IN_FLIGHT, MOST_IN_FLIGHT))
    }
}

/// One entry of `riders:`.
pub(super) fn riders(name: &str, at: &At<'_>, around: &Around<'_>) -> Option<RiderGroup> {
    let mut fields = at.fields()?;
    let journey = fields
        .need("journey")
        .and_then(|at| row_of(&at, &around.names.journeys, "journey", "journeys"));
    let calls = calls(&mut fields, around, &format!("riders/{name}"));
    let places = fields.get("places").map(|at| {
        let places = journey.and_then(|row| around.places_of(row));
        (at, places)
    });
    let places = places.and_then(|(at, places)| match (places, journey) {
        (Some(places), _) => places::choice(&at, places),
        (None, Some(row)) => {
            at.wrong_key(
                format!(
                    "the journey `{}` goes to no places",
                    around.names.journeys[row]
                ),
                "add `place: …` to it in the target file, or leave this out",
            );
            None
        }
        (None, None) => None,
    });
    let idempotency = idempotency(&mut fields);
    fields.finish(&[]);
    let give_up = journey
        .and_then(|row| around.journey(row))
        .and_then(Journey::longest_give_up);
    let max_in_flight = calls.max_in_flight(give_up);
    Some(RiderGroup {
        name: name.to_owned(),
        journey: journey?,
        arrivals: calls.arrivals?,
        timeout: calls.timeout,
        retry: calls.retry,
        max_in_flight,
        identity: None,
        places: places.unwrap_or_default(),
        idempotency,
    })
}

/// Whether what is tried again is known by the target as the same.
fn idempotency(fields: &mut Fields<'_>) -> bool {
    let given = fields.get("idempotency");
    let given = given.and_then(|at| at.word(&[("on", true), ("off", false)]));
    given.unwrap_or(true)
}

/// One entry of `issuers:`.
pub(super) fn issuers(
    name: &str,
    at: &At<'_>,
    around: &Around<'_>,
    hubs: &[HubGroup],
) -> Option<IssuerGroup> {
    let mut fields = at.fields()?;
    let command = fields
        .need("command")
        .and_then(|at| row_of(&at, &around.names.commands, "command", "commands"));
    let to_at = fields.need("to");
    let to = to_at
        .as_ref()
        .and_then(|at| row_of(at, around.hub_groups, "group of hubs", "hubs"));
    if let (Some(at), Some(command), Some(to)) = (to_at, command, to) {
        check_command(
            &at,
            around,
            command,
            hubs.iter()
                .find(|group| group.name == around.hub_groups[to]),
        );
    }
    let calls = calls(&mut fields, around, &format!("issuers/{name}"));
    let in_time = fields.need("in_time").and_then(|at| at.time());
    let ttl = fields.need("ttl").and_then(|at| at.time());
    if let (Some(in_time), Some(ttl)) = (in_time, ttl)
        && in_time > ttl
    {
        fields.at().find(&["in_time"]).wrong(
            "`in_time` is longer than `ttl`",
            "a command past its time to live can't be in time",
        );
    }
    let idempotency = idempotency(&mut fields);
    fields.finish(&[]);
    let max_in_flight = calls.max_in_flight(None);
    Some(IssuerGroup {
        name: name.to_owned(),
        command: command?,
        to: to?,
        arrivals: calls.arrivals?,
        in_time: in_time?,
        ttl: ttl?,
        timeout: calls.timeout,
        retry: calls.retry,
        max_in_flight,
        idempotency,
    })
}

/// A command must be for the hubs that it is sent to, and they must be able to take and answer it.
fn check_command(at: &At<'_>, around: &Around<'_>, command: usize, group: Option<&HubGroup>) {
    let name = &around.names.commands[command];
    let command = around
        .target
        .commands
        .iter()
        .find(|command| command.name == *name);
    let device = group.and_then(|group| around.device(group.device));
    let (Some(command), Some(device)) = (command, device) else {
        return;
    };
    let wanted = &around.names.devices[command.to];
    if *wanted != device.name {
        at.wrong(
            format!(
                "the command `{name}` is for the device `{wanted}`, and these are `{}`",
                device.name
            ),
            "name a group of that device",
        );
    } else if device.command.is_none() || device.answer.is_none() {
        at.wrong(
            format!("the device `{wanted}` takes or answers no commands"),
            "add `command:` and `answer:` to the device in the target file",
        );
    }
}
