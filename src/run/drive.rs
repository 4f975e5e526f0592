//! The run itself: connect, load, settle, drain, stop.
//!
//! Everything here waits on values and offsets; what is decided about agents, faults and verdicts is decided elsewhere.

use super::Stopped;
use super::ending::Ending;
use super::finish::{self, Outcome};
use super::interrupt::Interrupt;
use super::prepare::Prepared;
use super::timeline;
use super::watching::Watching;
use crate::event::{Event, Offset};
use crate::live::docks::DockFleet;
use crate::live::ghosts::Ghosts;
use crate::live::hubs::{self, HubFleet};
use crate::live::issuers::IssuerFleet;
use crate::live::tokens::Tokens;
use crate::live::users::UserFleet;
use crate::live::witness;
use crate::net::clock::Clock;
use crate::plan::Plan;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long the fleet may take to stand beyond its own ramp and one timeout.
const STAND_PATIENCE: Duration = Duration::from_secs(30);
/// From the moment at which all stand to 0:00, at least.
const BEFORE_ZERO: Duration = Duration::from_millis(200);
/// Sessions closed per second at the end, at least.
const CLOSES_PER_SECOND: u32 = 2_000;
/// The longest time for what is under way at an interruption, besides the profile's `drain`.
const GOODBYE: Duration = Duration::from_secs(1);

/// Everyone who takes part.
pub(super) struct Fleets {
    hubs: HubFleet,
    users: UserFleet,
    issuers: IssuerFleet,
    /// They watch until the last command has settled.
    ghosts: Ghosts,
    docks: DockFleet,
}

/// Why the load ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LoadEnded {
    /// The plan's end, recovery decided or the time for it over.
    ByPlan,
    /// A guard of the experiment, with its line.
    ByGuard(String),
    /// What must hold before anything is broken did not.
    Unsteady(Vec<String>),
    /// A signal.
    ByInterrupt,
}

/// Drives a prepared run to its end and writes what came of it.
///
/// # Errors
/// If the run could not begin, or its results not be written.
pub async fn drive(prepared: Prepared, interrupt: &Interrupt) -> Result<Ending, Stopped> {
    let driven = drive_open(&prepared, interrupt).await;
    let closed = prepared.close().await;
    let ending = driven?;
    // A verdict is not lost because something did not end well; a pass is.
    match closed {
        Err(stopped) if ending == Ending::Passed => Err(stopped),
        Err(stopped) => {
            eprintln!("{stopped}");
            Ok(ending)
        }
        Ok(()) => Ok(ending),
    }
}

async fn drive_open(prepared: &Prepared, interrupt: &Interrupt) -> Result<Ending, Stopped> {
    let clock = Clock::start();
    let mut watching = Watching::start(prepared, clock)?;
    let fleets = match gather(prepared, &mut watching, clock, interrupt).await {
        Ok(fleets) => fleets,
        Err(Stopped::Interrupted(ending)) => {
            let outcome = Outcome {
                load: LoadEnded::ByInterrupt,
                unhealed: Vec::new(),
                interrupted: Some(ending),
            };
            return finish::finish(prepared, watching, &outcome);
        }
        Err(stopped) => return Err(stopped),
    };
    let zero = Offset((clock.now().after(BEFORE_ZERO).second() + 1) * 1_000_000);
    watching.tell(Event::Zero { at: zero });
    fleets.users.begin(zero);
    fleets.issuers.begin(zero);
    fleets.docks.begin(zero);
    let sink = watching.mark_sink();
    let faults = prepared
        .chaos
        .as_ref()
        .map(|chaos| chaos.begin(clock, zero, &sink, watching.bulletin()))
        .transpose()?;

    let plan = &prepared.plan;
    let load = load(plan, &fleets, &mut watching, zero, clock, interrupt).await;
    watching.collector.arrivals_end(clock.now());
    if load != LoadEnded::ByPlan {
        watching.tell(Event::LoadEnd { at: clock.now() });
    }
    let unhealed = match faults {
        Some(mut faults) => watching
            .beside(async move { faults.undo_all().await })
            .await
            .map_err(Stopped::internal)?,
        None => Vec::new(),
    };
    if let Some(chaos) = &prepared.chaos {
        let told = watching.beside(chaos.links_told()).await;
        watching.notes.extend(told);
    }
    let interrupted = interrupt.seen();
    if interrupted.is_none() {
        let asked = witness::ask(plan, &prepared.hosts, clock, &sink);
        if let Err(error) = watching.beside(asked).await {
            watching.doubt(error.to_string());
        }
    }
    wind_down(plan, fleets, &mut watching, clock, interrupted.is_some()).await;
    finish::finish(
        prepared,
        watching,
        &Outcome {
            load,
            unhealed,
            interrupted: interrupt.seen().or(interrupted),
        },
    )
}

/// Connects the hubs and gets riders and issuers ready. A fleet of which one group does not stand at all can't be loaded.
async fn gather(
    prepared: &Prepared,
    watching: &mut Watching,
    clock: Clock,
    interrupt: &Interrupt,
) -> Result<Fleets, Stopped> {
    let plan = &prepared.plan;
    let sinks = watching.sinks();
    let gathering = async {
        // First of all: without them nobody could ask anything of the target.
        let tokens = Tokens::start(plan, &prepared.hosts, clock, &sinks[0])
            .await
            .map_err(Stopped::refused)?;
        let hubs = hubs::start(plan, &prepared.hosts, clock, &prepared.run_tag, &sinks)
            .await
            .map_err(Stopped::refused)?;
        let (hosts, tag) = (&prepared.hosts, &prepared.run_tag);
        let docks = DockFleet::start(plan, hosts, clock, tag, &sinks).map_err(Stopped::refused)?;
        let inboxes = docks.inboxes();
        let users = UserFleet::start(plan, hosts, clock, tag, &sinks, &inboxes, &tokens)
            .await
            .map_err(Stopped::refused)?;
        let seats = hubs.seats();
        let issuers = IssuerFleet::start(plan, hosts, clock, tag, seats, &sinks, &tokens)
            .await
            .map_err(Stopped::refused)?;
        let ghosts = Ghosts::start(plan, hosts, clock, tag, seats, &sinks[0])
            .await
            .map_err(Stopped::refused)?;
        let limit = stand_limit(plan);
        let all = hubs.all_stand(limit).await;
        Ok((
            Fleets {
                hubs,
                users,
                issuers,
                ghosts,
                docks,
            },
            all,
            limit,
        ))
    };
    let gathered = watching.beside(async {
        tokio::select! {
            gathered = gathering => gathered,
            ending = interrupt.wait() => Err(Stopped::Interrupted(ending)),
        }
    });
    let (fleets, all, limit) = gathered.await?;
    if !all {
        let standing = plan.hubs.iter().zip(fleets.hubs.standing());
        for (group, standing) in standing.filter(|(_, group)| group.connected < group.total) {
            let text = format!(
                "{} of {} hubs of `{}` stood {} s after the start",
                standing.connected,
                standing.total,
                group.name,
                limit.as_secs()
            );
            watching.doubt(text);
        }
    }
    Ok(fleets)
}

fn stand_limit(plan: &Plan) -> Duration {
    let ramp = plan
        .hubs
        .iter()
        .map(|group| group.connect_over + group.timeout)
        .max();
    ramp.unwrap_or_default() + STAND_PATIENCE
}

/// From 0:00 to the end of arrivals: the plan's duration, then on at the last rates until recovery is decided.
async fn load(
    plan: &Arc<Plan>,
    fleets: &Fleets,
    watching: &mut Watching,
    zero: Offset,
    clock: Clock,
    interrupt: &Interrupt,
) -> LoadEnded {
    let end = zero.after(plan.duration);
    let sink = watching.mark_sink();
    let pauses = watching.pauses();
    // Goes on while the run settles; whoever was not let back by then stays away.
    let mut readmitting = JoinSet::new();
    let until_end = async {
        let back = (&pauses, &mut readmitting);
        let fleets = (&fleets.hubs, &fleets.docks);
        timeline::run(plan, fleets, clock, zero, &sink, back).await;
        tokio::time::sleep_until(clock.instant(end)).await;
    };
    let ended = watching.beside_guarded(until_end, interrupt).await;
    if ended != LoadEnded::ByPlan {
        return ended;
    }
    watching.tell(Event::LoadEnd { at: end });
    if watching.recovery_decided() {
        return LoadEnded::ByPlan;
    }
    fleets.users.go_on();
    fleets.issuers.go_on();
    let last = end.after(plan.settle);
    while clock.now() < last && !watching.recovery_decided() {
        let next = clock.instant(last.min(clock.now().after(Duration::from_secs(1))));
        let waited = watching
            .beside_guarded(tokio::time::sleep_until(next), interrupt)
            .await;
        if waited != LoadEnded::ByPlan {
            return waited;
        }
    }
    LoadEnded::ByPlan
}

/// Ends arrivals, gives what is under way its time, then ends the sessions.
async fn wind_down(
    plan: &Plan,
    fleets: Fleets,
    watching: &mut Watching,
    clock: Clock,
    interrupted: bool,
) {
    let Fleets {
        hubs,
        users,
        issuers,
        ghosts,
        docks,
    } = fleets;
    let drained = clock.now().after(plan.drain);
    watching
        .beside(async {
            tokio::join!(users.stop(drained), issuers.stop(drained));
        })
        .await;
    // Docks take returns until the last rider is done, and then have their own time to get rid of them.
    let flushed = if interrupted {
        clock.now().after(GOODBYE)
    } else {
        clock.now().after(plan.drain)
    };
    let asking = watching.beside(docks.stop(flushed)).await;
    watching.until_commands_settle(drained).await;
    drop(ghosts);
    let count: u32 = plan.hubs.iter().map(|group| group.count).sum();
    let limit = if interrupted {
        GOODBYE
    } else {
        Duration::from_secs(u64::from(count / CLOSES_PER_SECOND)) + GOODBYE * 4
    };
    let left = watching.beside(hubs.stop(limit)).await;
    if left > 0 && !interrupted {
        watching.note(format!(
            "{left} hubs had not ended their sessions within {} s and were cut",
            limit.as_secs()
        ));
    }
    if !interrupted {
        watching.beside(asking.ask()).await;
    }
}
