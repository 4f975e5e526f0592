//! Issuers: each hands one command to the target, by an HTTP request or by a publish.
//!
//! Decides nothing but who sends; when and how often is the business of the schedule and of the issuer.

use super::carrier::NotReady;
use super::clients::{ClientError, client};
use super::docks::Inboxes;
use super::outgoing::Outgoing;
use super::publish::Publisher;
use super::schedule::{Arrivals, LaneSetup, Lanes};
use super::seats::Seats;
use super::ticket::{Answered, Then, Ticket, Worker};
use super::tokens::Tokens;
use crate::agents::{Issuer, IssuerConfig, ReplyResult};
use crate::dice::Dice;
use crate::event::{AgentId, AgentKind, Offset, Outcome, Sink};
use crate::net::clock::Clock;
use crate::net::hosts::Hosts;
use crate::net::http::Http;
use crate::plan::Plan;
use crate::plan::json_path::JsonPath;
use crate::plan::target::{CommandSend, CommandSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a broker may take to accept the connection over which commands are published.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why the issuers can't start.
#[derive(Debug, thiserror::Error)]
pub enum IssuerError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Broker(#[from] NotReady),
    #[error(
        "commands for `{device}` are published, and of its brokers ({addresses}) not all accepted a connection within {} s: {why}; look whether they run and whether user name, password and certificates are right",
        PATIENCE.as_secs()
    )]
    NoBroker {
        device: String,
        addresses: String,
        why: String,
    },
}

/// All issuers of a run.
pub struct IssuerFleet {
    lanes: Lanes,
}

/// How the issuers of a group hand over.
#[derive(Clone)]
enum Way {
    Http(Http, Tokens, Arc<Seats>),
    Publish(Publisher, Routes),
}

/// To which shard a command is published: where its hub stands or was last, or where it belongs.
#[derive(Clone)]
struct Routes {
    plan: Arc<Plan>,
    seats: Arc<Seats>,
}

impl Routes {
    fn shard(&self, issuer: &Issuer) -> usize {
        let command = issuer.command();
        let to = self.plan.issuers[usize::from(command.issuer)].to;
        let seat = self.seats.of_hub(to, issuer.hub());
        seat.map(|seat| seat.shard)
            .or_else(|| self.plan.shard_of_command(command))
            .unwrap_or_default()
    }
}

impl IssuerFleet {
    /// Sets up clients and brokers' connections. Nothing is sent before [`IssuerFleet::begin`].
    ///
    /// # Errors
    /// If there is no HTTP client to be had, or a broker accepts no connection.
    pub async fn start(
        plan: &Arc<Plan>,
        hosts: &Arc<Hosts>,
        clock: Clock,
        run_tag: &str,
        seats: &Arc<Seats>,
        sinks: &[Sink],
        tokens: &Tokens,
    ) -> Result<IssuerFleet, IssuerError> {
        let cut = CancellationToken::new();
        let mut lanes = Lanes::new(clock, cut.clone());
        let publishers = publishers(plan, hosts, clock, run_tag, sinks).await?;
        for (group, sink) in (0..plan.issuers.len()).zip(sinks.iter().cycle()) {
            let issuers = &plan.issuers[group];
            let command = &plan.target.commands[issuers.command];
            let way = match publishers.get(&command.to) {
                Some(publisher) if is_published(command) => {
                    let routes = Routes {
                        plan: Arc::clone(plan),
                        seats: Arc::clone(seats),
                    };
                    Way::Publish(publisher.clone(), routes)
                }
                _ => {
                    let idle = issuers.max_in_flight as usize;
                    let (name, tls) = (format!("command `{}`", command.name), command.tls.as_ref());
                    let http = client(hosts, idle, issuers.timeout, tls, name)?;
                    Way::Http(http, tokens.clone(), Arc::clone(seats))
                }
            };
            let worker = Worker {
                clock,
                sink: Arc::clone(sink),
                docks: Inboxes::default(),
            };
            lanes.add(LaneSetup {
                arrivals: Arrivals::new(issuers.arrivals.clone(), plan.duration),
                max_in_flight: issuers.max_in_flight,
                budget: plan.budget(AgentKind::Issuer, group),
                agent: issuers_of(plan, group, run_tag),
                dispatch: dispatch(way, worker.clone(), cut.clone()),
                worker,
                orders: lanes.orders(),
                cut: cut.clone(),
            });
        }
        Ok(IssuerFleet { lanes })
    }

    /// Lets commands begin by their schedules: `0:00` is at `zero`.
    pub fn begin(&self, zero: Offset) {
        self.lanes.begin(zero);
    }

    /// Lets commands go on past the load's end at their last rate, until the stop. Without it they end with the load.
    pub fn go_on(&self) {
        self.lanes.go_on();
    }

    /// Issuers that wait for an answer now.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.lanes.in_flight()
    }

    /// Ends arrivals and lets commands on the way go on until `deadline`; then what is in flight is given up and told as
    /// unfinished.
    pub async fn stop(mut self, deadline: Offset) {
        self.lanes.stop(deadline).await;
    }
}

fn is_published(command: &CommandSpec) -> bool {
    matches!(command.send, CommandSend::Publish(_))
}

/// A publisher for each device whose commands are published, all of them connected.
async fn publishers(
    plan: &Arc<Plan>,
    hosts: &Hosts,
    clock: Clock,
    run_tag: &str,
    sinks: &[Sink],
) -> Result<BTreeMap<usize, Publisher>, IssuerError> {
    let commands = plan
        .issuers
        .iter()
        .map(|group| &plan.target.commands[group.command]);
    let devices: BTreeSet<usize> = commands
        .filter(|command| is_published(command))
        .map(|command| command.to)
        .collect();
    let mut publishers = BTreeMap::new();
    for (device, sink) in devices.into_iter().zip(sinks.iter().cycle()) {
        let publisher = Publisher::start(plan, device, hosts, clock, run_tag, sink).await?;
        if let Err(why) = publisher.stands(PATIENCE).await {
            let device = &plan.target.devices[device];
            let addresses: Vec<String> = device
                .shards
                .iter()
                .map(|(_, address)| address.to_string())
                .collect();
            return Err(IssuerError::NoBroker {
                device: device.name.clone(),
                addresses: addresses.join(", "),
                why,
            });
        }
        publishers.insert(device, publisher);
    }
    Ok(publishers)
}

/// Makes the issuers of a group.
fn issuers_of(
    plan: &Plan,
    group: usize,
    run_tag: &str,
) -> Box<dyn Fn(u64) -> (Issuer, Dice) + Send> {
    let config = Arc::new(IssuerConfig::of(plan, group, run_tag));
    let seed = plan.seed;
    let row = u16::try_from(group).unwrap_or(u16::MAX);
    Box::new(move |number| {
        let id = AgentId {
            kind: AgentKind::Issuer,
            group: row,
            index: number,
        };
        (Issuer::new(&config, number), Dice::of(seed, id))
    })
}

/// Works each ticket in a task of its own; there are never more of them than the group may have in flight.
fn dispatch(
    way: Way,
    worker: Worker,
    cut: CancellationToken,
) -> Box<dyn Fn(Ticket<Issuer>) + Send> {
    Box::new(move |ticket| {
        let (way, worker, cut) = (way.clone(), worker.clone(), cut.clone());
        tokio::spawn(async move { hand_over(ticket, &way, &worker, &cut).await });
    })
}

/// Performs one issuer's attempts until it waits or is done.
async fn hand_over(
    mut ticket: Ticket<Issuer>,
    way: &Way,
    worker: &Worker,
    cut: &CancellationToken,
) {
    let mut actions = Vec::new();
    let mut then = ticket.begin(worker, &mut actions);
    while let Then::Request(timeout) = then {
        let answered = tokio::select! {
            biased;
            () = cut.cancelled() => return ticket.stop(worker, &mut actions),
            answered = way.ask(ticket.agent(), timeout, worker.clock) => answered,
        };
        then = ticket.answered(worker, &answered, &mut actions);
    }
    ticket.settle(then);
}

impl Way {
    async fn ask(&self, issuer: &Issuer, timeout: Duration, clock: Clock) -> Answered {
        match (self, issuer.send()) {
            (Way::Http(http, tokens, seats), CommandSend::Http(request)) => {
                let stamp = tokens.stamp();
                let mut value = |name: &str, out: &mut String| {
                    tokens.value(name, out) || issuer.value(name, out)
                };
                let answer = http.perform(request, &mut value, timeout).await;
                tokens.answered(Some(request), stamp, &answer);
                let is_accepted = answer
                    .result
                    .is_ok_and(|status| request.answer.is_ok(status));
                match issuer.given_id().filter(|_| is_accepted) {
                    Some(path) if !learn(issuer, path, &answer.body, seats, clock.now()) => {
                        Answered::plain(ReplyResult::Failed(Outcome::Protocol))
                    }
                    _ => answer.into(),
                }
            }
            (Way::Publish(publisher, routes), CommandSend::Publish(publishing)) => {
                let message = Outgoing::of(publishing, &mut |name, out| issuer.value(name, out));
                let Ok(message) = message else {
                    return Answered::not_sent();
                };
                let sent = publisher.publish(routes.shard(issuer), message);
                Answered::plain(match tokio::time::timeout(timeout, sent).await {
                    Ok(Outcome::Ok) => ReplyResult::Accepted,
                    Ok(outcome) => ReplyResult::Failed(outcome),
                    Err(_) => ReplyResult::Failed(Outcome::TimedOut),
                })
            }
            // The way was chosen by how the command is sent.
            _ => Answered::not_sent(),
        }
    }
}

/// Takes the id that the target has given to the command out of its answer; false if it is not there.
fn learn(issuer: &Issuer, path: &JsonPath, body: &[u8], seats: &Seats, now: Offset) -> bool {
    let document: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let text = document.and_then(|document| path.text(&document));
    let text = text.filter(|text| !text.is_empty());
    text.inspect(|text| seats.given().give(text, issuer.command(), now))
        .is_some()
}
