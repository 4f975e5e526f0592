//! Riders on Goose, in its open-loop drain form. The only file that knows Goose.
//!
//! One attack of one scenario; each of its users takes tickets and performs the requests of the rider on it until the rider
//! waits or is done. There are as many users as riders may be in flight, so a ticket never queues. The attack has no run time:
//! it ends when the last sender of tickets is gone and every user has run its one iteration.

use super::clients::{ClientError, Clients};
use super::docks::Inboxes;
use super::schedule::{Arrivals, LaneSetup, Lanes};
use super::ticket::{Then, Ticket, Worker};
use super::tokens::Tokens;
use crate::agents::{Rider, RiderConfig};
use crate::dice::Dice;
use crate::event::{AgentId, AgentKind, Offset, Outcome, Sink};
use crate::net::clock::Clock;
use crate::net::hosts::Hosts;
use crate::net::http::Answer;
use crate::net::kept::Sending;
use crate::plan::Plan;
use goose::client::GooseClientBuilder;
use goose::config::GooseConfiguration;
use goose::goose::{
    GooseRequest, GooseUser, Scenario, Transaction, TransactionError, TransactionFunction,
};
use goose::{GooseAttack, GooseError};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long Goose may take to start its users, and to notice that they have ended (its loop looks twice a second).
const PATIENCE: Duration = Duration::from_secs(60);
const LONGEST_GOODBYE: Duration = Duration::from_secs(2);
/// How long what is always asked at the end of journeys may take when the run is over.
const LONGEST_LEAVE: Duration = Duration::from_secs(10);

/// Why the riders can't start.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("Goose refuses the riders' attack: {0}")]
    Refused(#[from] Box<GooseError>),
    #[error("Goose's attack ended before its {wanted} users stood: {why}")]
    Ended { wanted: usize, why: String },
    #[error("only {standing} of Goose's {wanted} users stood after {} s", PATIENCE.as_secs())]
    Slow { standing: usize, wanted: usize },
}

/// All riders of a run.
pub struct UserFleet {
    lanes: Lanes,
    /// `None` if the plan has no riders.
    attack: Option<JoinHandle<()>>,
}

/// What every Goose user needs to serve riders.
struct Stand {
    tickets: flume::Receiver<Ticket<Rider>>,
    /// Told once by each user that stands.
    standing: flume::Sender<()>,
    clients: Clients,
    clock: Clock,
    sinks: Vec<Sink>,
    /// Cancelled when every rider is to leave.
    leave: CancellationToken,
    docks: Inboxes,
    cut: CancellationToken,
    tokens: Tokens,
}

impl UserFleet {
    /// Starts Goose's users and waits until all stand; `docks` is where they hand over. Nobody rides before [`UserFleet::begin`].
    ///
    /// # Errors
    /// If there is no HTTP client to be had, or Goose does not start.
    pub async fn start(
        plan: &Arc<Plan>,
        hosts: &Arc<Hosts>,
        clock: Clock,
        run_tag: &str,
        sinks: &[Sink],
        docks: &Inboxes,
        tokens: &Tokens,
    ) -> Result<UserFleet, UserError> {
        let cut = CancellationToken::new();
        let leave = CancellationToken::new();
        let mut lanes = Lanes::with_grace(clock, leave.clone(), cut.clone(), grace(plan));
        let users: usize = plan
            .riders
            .iter()
            .map(|group| group.max_in_flight as usize)
            .sum();
        if users == 0 {
            return Ok(UserFleet {
                lanes,
                attack: None,
            });
        }
        let timeout = plan
            .riders
            .iter()
            .map(|group| group.timeout)
            .max()
            .unwrap_or(PATIENCE);
        let (sender, tickets) = flume::unbounded();
        let (standing, stood) = flume::unbounded();
        let stand = Stand {
            tickets,
            standing,
            clients: Clients::of(plan, hosts, users, timeout)?,
            clock,
            sinks: sinks.to_vec(),
            leave,
            docks: docks.clone(),
            cut: cut.clone(),
            tokens: tokens.clone(),
        };
        let attack = launch(stand, stood, users).await?;
        let configs = RiderConfig::all(plan, run_tag);
        for (group, sink) in (0..plan.riders.len()).zip(sinks.iter().cycle()) {
            let sender = sender.clone();
            lanes.add(LaneSetup {
                arrivals: Arrivals::new(plan.riders[group].arrivals.clone(), plan.duration),
                max_in_flight: plan.riders[group].max_in_flight,
                budget: plan.budget(AgentKind::Rider, group),
                agent: riders(plan.seed, group, &configs[group]),
                // The users outlive the lanes.
                dispatch: Box::new(move |ticket| drop(sender.send(ticket))),
                worker: Worker {
                    clock,
                    sink: Arc::clone(sink),
                    docks: docks.clone(),
                },
                orders: lanes.orders(),
                cut: cut.clone(),
            });
        }
        Ok(UserFleet {
            lanes,
            attack: Some(attack),
        })
    }

    /// Lets riders arrive by their schedules: `0:00` is at `zero`.
    pub fn begin(&self, zero: Offset) {
        self.lanes.begin(zero);
    }

    /// Lets arrivals go on past the load's end at their last rate, until the stop. Without it they end with the load.
    pub fn go_on(&self) {
        self.lanes.go_on();
    }

    /// Riders that wait for an answer now.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.lanes.in_flight()
    }

    /// Ends arrivals and lets riders on the way go on until `deadline`; then requests in flight are given up and told as
    /// unfinished, as is who thinks or waits to retry beyond it. What their journeys always ask at the end is still asked, for 10 s at
    /// most. Returns at most 3 s after that.
    pub async fn stop(mut self, deadline: Offset) {
        self.lanes.stop(deadline).await;
        if let Some(mut attack) = self.attack.take()
            && tokio::time::timeout(LONGEST_GOODBYE, &mut attack)
                .await
                .is_err()
        {
            // Its users have ended and all is told: nothing is lost with it.
            attack.abort();
        }
    }
}

/// How long leaving may take: one attempt at everything that is always asked, within reason.
fn grace(plan: &Plan) -> Duration {
    let needed = plan.riders.iter().map(|group| {
        let always = plan.target.journeys[group.journey].always.len();
        group.timeout * u32::try_from(always).unwrap_or(u32::MAX)
    });
    needed.max().unwrap_or_default().min(LONGEST_LEAVE)
}

/// Makes the riders of a group.
fn riders(
    seed: u64,
    group: usize,
    config: &Arc<RiderConfig>,
) -> Box<dyn Fn(u64) -> (Rider, Dice) + Send> {
    let config = Arc::clone(config);
    let row = u16::try_from(group).unwrap_or(u16::MAX);
    Box::new(move |number| {
        let id = AgentId {
            kind: AgentKind::Rider,
            group: row,
            index: number,
        };
        (Rider::new(&config, number), Dice::of(seed, id))
    })
}

/// Starts the attack and waits until all users stand.
async fn launch(
    stand: Stand,
    stood: flume::Receiver<()>,
    users: usize,
) -> Result<JoinHandle<()>, UserError> {
    // Goose sets the level for everybody, even where its own logger is not taken.
    let level = log::max_level();
    let attack = attack(Arc::new(stand), users).map_err(Box::new)?;
    let (failed, why) = flume::bounded(1);
    let handle = tokio::spawn(async move {
        if let Err(error) = attack.execute().await {
            let _ = failed.send(error.to_string());
        }
    });
    let give_up = tokio::time::sleep(PATIENCE);
    let mut give_up = pin!(give_up);
    for standing in 0..users {
        tokio::select! {
            told = stood.recv_async() => if told.is_err() {
                let why = why.recv_async().await.unwrap_or_else(|_| "without an error".to_owned());
                return Err(UserError::Ended { wanted: users, why });
            },
            () = give_up.as_mut() => {
                handle.abort();
                return Err(UserError::Slow { standing, wanted: users });
            }
        }
    }
    log::set_max_level(level);
    Ok(handle)
}

/// The attack: `users` users of one scenario.
fn attack(stand: Arc<Stand>, users: usize) -> Result<GooseAttack, GooseError> {
    let mut configuration = GooseConfiguration::default();
    // Goose wants one; every request names its whole address.
    configuration.host = Some("http://127.0.0.1".to_owned());
    configuration.users = Some(users);
    // All at once: in about 50 ms.
    configuration.increase_rate = Some((users * 20).to_string());
    // Otherwise it listens for commands of anybody.
    configuration.no_telnet = true;
    // What Goose measures starts when a user is free, not when a rider is due; `measure` does it.
    configuration.no_metrics = true;
    // With this, and with no `iterations` here, it prints nothing to stdout.
    configuration.no_print_metrics = true;
    configuration.no_error_summary = true;
    configuration.quiet = 1;
    let prepared = Arc::clone(&stand);
    let prepare: TransactionFunction = Arc::new(move |user| {
        // Its own copy of the configuration: this user ends after its one transaction.
        user.config.iterations = Some(1);
        user.client = prepared.clients.shared().client().clone();
        let _ = prepared.standing.send(());
        Box::pin(async { Ok(()) })
    });
    let serve: TransactionFunction = Arc::new(move |user| {
        let stand = Arc::clone(&stand);
        Box::pin(async move {
            stand.serve(user).await;
            Ok(())
        })
    });
    GooseAttack::initialize_with_config(configuration)?
        // One client, replaced by ours: a client per user takes milliseconds each.
        .set_client_builder_without_cookies(GooseClientBuilder::new().without_cookies())
        .map(|attack| {
            let scenario = Scenario::new("riders")
                .register_transaction(Transaction::new(prepare).set_on_start())
                .register_transaction(Transaction::new(serve));
            attack.register_scenario(scenario)
        })
}

impl Stand {
    /// Serves riders until nobody can hand one in any more.
    async fn serve(&self, user: &mut GooseUser) {
        let sink = &self.sinks[user.weighted_users_index % self.sinks.len()];
        let worker = Worker {
            clock: self.clock,
            sink: Arc::clone(sink),
            docks: self.docks.clone(),
        };
        let mut leave = pin!(self.leave.cancelled());
        let mut cut = pin!(self.cut.cancelled());
        let mut actions = Vec::new();
        'tickets: while let Ok(mut ticket) = self.tickets.recv_async().await {
            let mut then = ticket.begin(&worker, &mut actions);
            while let Then::Request(timeout) = then {
                tokio::select! {
                    biased;
                    () = cut.as_mut() => {
                        ticket.stop(&worker, &mut actions);
                        continue 'tickets;
                    }
                    () = leave.as_mut(), if !ticket.is_leaving() => {
                        then = ticket.leave(&worker, &mut actions);
                    }
                    answer = self.ask(user, ticket.agent(), timeout) => {
                        then = ticket.answered(&worker, &answer.into(), &mut actions);
                    }
                }
            }
            ticket.settle(then);
        }
    }

    /// Lets the Goose user send the rider's request, and reads the whole answer.
    async fn ask(&self, user: &mut GooseUser, rider: &Rider, timeout: Duration) -> Answer {
        let Some(http) = self.clients.of_rider(rider) else {
            return Answer::failed(Outcome::NotSent);
        };
        // Goose sends by the user's client, whatever the request was made with.
        user.client = http.client().clone();
        let asked = rider.request();
        let holding = self.tokens.hold(rider.account(), asked);
        let Ok(Some(held)) = tokio::time::timeout(timeout, holding).await else {
            return Answer::failed(Outcome::NotSent);
        };
        let prepared = asked.and_then(|request| {
            let mut value = |name: &str, out: &mut String| {
                self.tokens.held_value(&held, name, out) || rider.value(name, out)
            };
            let builder = http.prepare(request, &mut value, timeout).ok()?;
            Some(Sending::new(builder, request.method, timeout))
        });
        let Some(mut sending) = prepared else {
            return Answer::failed(Outcome::NotSent);
        };
        while let Some(builder) = sending.request() {
            let request = GooseRequest::builder()
                .name("rider")
                .set_request_builder(builder)
                .build();
            let sent = match user.request(request).await.map_err(|error| *error) {
                Ok(sent) => sent.response,
                Err(TransactionError::Reqwest(error)) => Err(error),
                Err(_) => break,
            };
            if let Some(answer) = http.received(sent, &sending).await {
                self.tokens.answered_with(&held, asked, &answer);
                return answer;
            }
        }
        Answer::failed(Outcome::NotSent)
    }
}
