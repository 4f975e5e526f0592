//! What a plan will ask of the target and of this machine, worked out before anything is sent.
//!
//! `rushhour check` prints it; the checks of `spec` refuse what does not fit. Pure: what the machine has to offer is compared by
//! whoever knows the machine.

mod connects;
mod docks;
mod identities;
mod issuers;
mod journeys;
mod links;
mod policy;

pub use policy::policy as policy_text;

mod print;
mod probes;
mod rooms;
mod tokens;

pub use connects::peak_connects_per_second;
pub use rooms::{MarkRoom, rooms};

use super::Plan;
use super::fault::{FaultKind, TriggerKind};
use super::fleet::HubGroup;
use super::target::{CommandSend, Journey};
use crate::arrivals::{Schedule, Spread};
use crate::retry::Retry;
use std::time::Duration;

/// Everything that `check` shows of a plan.
#[derive(Debug, Clone)]
pub struct Outlook<'a> {
    plan: &'a Plan,
    pub arriving: Vec<Arriving>,
    pub rooms: Vec<MarkRoom>,
    pub peak_connects_per_second: f64,
    pub peak_requests_per_second: f64,
    pub towards: Vec<Towards>,
    /// Host and the place of the target file that names it first.
    pub hosts: Vec<(String, String)>,
    pub warnings: Vec<String>,
}

impl<'a> Outlook<'a> {
    /// Works it out.
    #[must_use]
    pub fn of(plan: &'a Plan) -> Outlook<'a> {
        Outlook {
            plan,
            arriving: arriving(plan),
            rooms: rooms(plan),
            peak_connects_per_second: peak_connects_per_second(plan),
            peak_requests_per_second: peak_requests_per_second(plan),
            towards: towards(plan),
            hosts: hosts(plan),
            warnings: warnings(plan),
        }
    }

    /// Connections that this process holds at the same time, at worst; each is a socket and a file descriptor.
    #[must_use]
    pub fn sockets(&self) -> u64 {
        self.towards
            .iter()
            .map(|towards| towards.hubs + towards.requests)
            .sum()
    }
}

/// A group whose arrivals follow a schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Arriving {
    pub group: String,
    pub pieces: Vec<Phase>,
    /// Whether they are the bins of a recording.
    pub is_recorded: bool,
    /// Per second.
    pub peak_per_second: f64,
    /// The longest that one request may wait in all its attempts.
    pub worst_wait: Duration,
    /// The peak rate times the worst wait: so many may be under way when the target stands still.
    pub needed_in_flight: u64,
    pub max_in_flight: u32,
}

/// One piece of a schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    pub from: Duration,
    pub to: Duration,
    pub from_per_second: f64,
    pub to_per_second: f64,
    /// Arrivals to expect.
    pub arrivals: f64,
}

/// Connections at the same time to one destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Towards {
    /// As the target file writes it, `mqtt://…` or `http://…`.
    pub address: String,
    pub hubs: u64,
    /// Of riders and issuers, each with a connection of its own at worst, of publishers, and of docks.
    pub requests: u64,
}

/// Every group with arrivals: riders, then issuers.
#[must_use]
pub fn arriving(plan: &Plan) -> Vec<Arriving> {
    let riders = plan.riders.iter().map(|group| {
        let journey = plan.target.journeys.get(group.journey);
        let give_up = journey.and_then(Journey::longest_give_up);
        arriving_group(
            &group.name,
            &group.arrivals,
            worst_wait(group.timeout, &group.retry, give_up),
            group.max_in_flight,
        )
    });
    let issuers = plan.issuers.iter().map(|group| {
        arriving_group(
            &group.name,
            &group.arrivals,
            worst_wait(group.timeout, &group.retry, None),
            group.max_in_flight,
        )
    });
    riders.chain(issuers).collect()
}

fn arriving_group(
    name: &str,
    arrivals: &Schedule,
    worst_wait: Duration,
    max_in_flight: u32,
) -> Arriving {
    let mut from = Duration::ZERO;
    let pieces = arrivals.pieces().iter().map(|piece| {
        let began = from;
        from += piece.lasts;
        Phase {
            from: began,
            to: from,
            from_per_second: piece.from_per_second,
            to_per_second: piece.to_per_second,
            arrivals: (piece.from_per_second + piece.to_per_second) / 2.0
                * piece.lasts.as_secs_f64(),
        }
    });
    Arriving {
        group: name.to_owned(),
        pieces: pieces.collect(),
        is_recorded: matches!(arrivals.spread(), Spread::Recorded { .. }),
        peak_per_second: arrivals.peak_per_second(),
        worst_wait,
        needed_in_flight: needed_in_flight(arrivals, worst_wait),
        max_in_flight,
    }
}

/// The worst wait of one step: all its attempts with the waits between them, or the longest `give_up` of a step that polls.
#[must_use]
pub fn worst_wait(timeout: Duration, retry: &Retry, give_up: Option<Duration>) -> Duration {
    let attempts = retry.longest_total(timeout).unwrap_or_default();
    attempts.max(give_up.unwrap_or_default())
}

/// The peak rate times the worst wait of one step.
#[must_use]
pub fn needed_in_flight(arrivals: &Schedule, worst: Duration) -> u64 {
    // Far below 2^53 for any rate and wait that a file may hold; a float beyond u64 stops at its largest value.
    (arrivals.peak_per_second() * worst.as_secs_f64()).ceil() as u64
}

/// The longest that anything goes on in step with a disturbance: a timeout and the longest wait after it, with its group.
#[must_use]
pub fn longest_echo(plan: &Plan) -> Option<(String, Duration)> {
    ways_round(plan)
        .map(|(name, timeout, wait)| (name, timeout + wait))
        .max_by_key(|(_, echo)| *echo)
}

/// Timeout of one attempt and longest wait to the next, of the group for which both together are longest.
#[must_use]
pub fn longest_way_round(plan: &Plan) -> Option<(Duration, Duration)> {
    ways_round(plan)
        .map(|(_, timeout, wait)| (timeout, wait))
        .max_by_key(|(timeout, wait)| *timeout + *wait)
}

/// Every group with the timeout of one attempt and its longest wait to the next.
fn ways_round(plan: &Plan) -> impl Iterator<Item = (String, Duration, Duration)> + '_ {
    let again = |retry: &Retry| match retry.attempts {
        Some(1) => Duration::ZERO,
        _ => retry.longest_wait(),
    };
    let hubs = plan.hubs.iter().map(|group| {
        let wait = group.reconnect.retry.longest_wait();
        (group.name.clone(), group.timeout, wait)
    });
    let riders = plan
        .riders
        .iter()
        .map(move |group| (group.name.clone(), group.timeout, again(&group.retry)));
    let issuers = plan
        .issuers
        .iter()
        .map(move |group| (group.name.clone(), group.timeout, again(&group.retry)));
    hubs.chain(riders).chain(issuers)
}

/// Requests per second at worst, without retries: every rider of the peak sends each step and what is asked however the ride ends, and
/// every dock refreshes its status. What is asked `unless` a step went well is not among them, nor is what docks send for riders: its
/// rate is that of the rides' ends.
#[must_use]
pub fn peak_requests_per_second(plan: &Plan) -> f64 {
    let riders = plan.riders.iter().map(|group| {
        let journey = plan.target.journeys.get(group.journey);
        let steps = journey.map_or(0, Journey::requests_when_well);
        group.arrivals.peak_per_second() * steps as f64
    });
    let issuers = plan.issuers.iter().filter(|group| {
        let command = plan.target.commands.get(group.command);
        command.is_some_and(|command| matches!(command.send, CommandSend::Http(_)))
    });
    let issuers = issuers.map(|group| group.arrivals.peak_per_second());
    let docks = plan.docks.iter().filter_map(|group| {
        let every = group.status_every?;
        Some(f64::from(group.count) / every.as_secs_f64())
    });
    // Folded from 0: the sum of nothing would be -0.
    riders
        .chain(issuers)
        .chain(docks)
        .fold(0.0, |sum, rate| sum + rate)
}

/// Connections by destination: hubs spread evenly over the shards of their device.
#[must_use]
pub fn towards(plan: &Plan) -> Vec<Towards> {
    let mut all: Vec<Towards> = Vec::new();
    let mut add = |address: String, hubs: u64, requests: u64| {
        let host = host_of(&address);
        match all
            .iter_mut()
            .find(|towards| host_of(&towards.address) == host)
        {
            Some(towards) => {
                towards.hubs += hubs;
                towards.requests += requests;
            }
            None => all.push(Towards {
                address,
                hubs,
                requests,
            }),
        }
    };
    for group in &plan.hubs {
        let shards = &plan.target.devices[group.device].shards;
        for (row, (_, address)) in shards.iter().enumerate() {
            add(address.to_string(), share_of(group, row, shards.len()), 0);
        }
    }
    for group in &plan.riders {
        let mut seen: Vec<String> = Vec::new();
        for (_, request) in plan.target.journeys[group.journey].requests() {
            let address = request.url.to_string();
            if !seen.contains(&host_of(&address)) {
                seen.push(host_of(&address));
                add(address, 0, u64::from(group.max_in_flight));
            }
        }
    }
    for group in &plan.issuers {
        let command = &plan.target.commands[group.command];
        match &command.send {
            CommandSend::Http(request) => {
                add(request.url.to_string(), 0, u64::from(group.max_in_flight))
            }
            CommandSend::Publish(_) => {
                for (_, address) in &plan.target.devices[command.to].shards {
                    add(address.to_string(), 0, 1);
                }
            }
        }
    }
    for group in &plan.docks {
        let device = &plan.target.docks[group.device];
        let refreshes = device
            .status
            .iter()
            .map(|request| (request, group.refreshes_at_once()));
        let returns = device.sends.iter().map(|sent| (&sent.request, 1));
        for (request, at_once) in refreshes.chain(returns) {
            add(request.url.to_string(), 0, u64::from(group.count) * at_once);
        }
    }
    all
}

/// Hubs of a group on the shard in row `row`, rounded up: a hash spreads them evenly but not exactly.
fn share_of(group: &HubGroup, row: usize, shards: usize) -> u64 {
    let (count, shards, row) = (u64::from(group.count), shards as u64, row as u64);
    count / shards + u64::from(row < count % shards)
}

/// What names the host in an address: `host:port`, or a placeholder of the lab.
#[must_use]
pub fn host_of(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    // Who logs in, and with which password, is nobody's business.
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    host.to_owned()
}

/// Every host that may be contacted, each once, with the place of the target file that names it first.
#[must_use]
pub fn hosts(plan: &Plan) -> Vec<(String, String)> {
    let mut hosts: Vec<(String, String)> = Vec::new();
    for (place, address) in plan.target.addresses() {
        let host = host_of(&address);
        if !hosts.iter().any(|(known, _)| *known == host) {
            hosts.push((host, place));
        }
    }
    hosts
}

/// What to know although the plan is allowed.
#[must_use]
pub fn warnings(plan: &Plan) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, every) in &plan.target.periodic {
        let asked_for = plan.triggers.iter().any(|trigger| match trigger.kind {
            TriggerKind::Operate { operation } => {
                resembles(&plan.target.operations[operation].name, name)
            }
            TriggerKind::Renew(_) => ["certificate-renewal", "certificate-refresh"]
                .iter()
                .any(|words| resembles(words, name)),
            TriggerKind::Disconnect(_)
            | TriggerKind::Reauthenticate(_)
            | TriggerKind::Offline(_)
            | TriggerKind::Shed(_) => false,
        });
        if *every > plan.duration && !asked_for {
            warnings.push(format!(
                "`{name}` happens every {} and the load lasts {}: this profile never covers it",
                super::quantity::duration(*every),
                super::quantity::duration(plan.duration)
            ));
        }
    }
    let few = plan.riders.iter();
    warnings.extend(few.filter_map(|group| journeys::too_few_accounts(plan, group)));
    warnings.extend(connects::warnings(plan));
    if plan.expect.is_empty() {
        warnings.push(
            "nothing is expected, so the run can't fail; add `expect:` to the profile".to_owned(),
        );
    }
    warnings
}

/// `refresh-certificates` asks for `certificate-refresh`: the same words in any order, singular or plural.
fn resembles(operation: &str, periodic: &str) -> bool {
    let words = |name: &str| {
        let mut words: Vec<String> = name
            .split(['-', '_'])
            .map(|word| word.trim_end_matches('s').to_owned())
            .collect();
        words.sort();
        words
    };
    words(operation) == words(periodic)
}

/// What undoes a fault, in words.
#[must_use]
pub fn undo_of(plan: &Plan, fault: &FaultKind) -> String {
    let target = &plan.target;
    match fault {
        FaultKind::Act { component, act } => act.undo_text(&target.components[*component], target),
        FaultKind::Link(fault) => fault.end_text(&target.links[fault.link].name),
        FaultKind::Cut(_) => "none needed: who lost a connection comes back by itself".to_owned(),
        FaultKind::Operate { operation } => match &target.operations[*operation].undo {
            Some(undo) => format!("{} {}", undo.method.name(), undo.url),
            None => "none".to_owned(),
        },
    }
}
