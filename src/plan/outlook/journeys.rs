//! What `rushhour check` says of the riders of a group beyond their steps.

use crate::plan::fleet::RiderGroup;
use crate::plan::places::{Choice, Chooser};
use crate::plan::quantity::{count, duration};
use crate::plan::target::{Journey, Repeat, StepAction};
use crate::plan::{Plan, quantity};
use std::time::Duration;

/// A line for each thing that the riders of this row do besides asking step by step.
pub(super) fn lines(plan: &Plan, row: usize) -> Vec<String> {
    let group = &plan.riders[row];
    let journey = &plan.target.journeys[group.journey];
    let mut lines = repeats(journey);
    lines.extend(closings(journey));
    lines.extend(spans(journey));
    lines.extend(places(plan, row, group, journey));
    if let Some(rows) = &group.identity {
        let name = &plan.target.identities[rows.set].name;
        lines.push(format!("{} accounts of {name}", count(rows.count as u64)));
    }
    lines.extend(journey.tls.as_ref().map(super::identities::of_requests));
    if !group.idempotency {
        lines.push("no idempotency: a repeated attempt looks like a new one".to_owned());
    }
    lines
}

/// Whether so few accounts are there that riders must share them even if the target answers at once.
pub(super) fn too_few_accounts(plan: &Plan, group: &RiderGroup) -> Option<String> {
    let rows = group.identity.as_ref()?;
    let journey = plan.target.journeys.get(group.journey)?;
    let thinking = journey.steps.iter().map(|step| match step.action {
        StepAction::Think { low, high } => (low + high) / 2,
        _ => Duration::ZERO,
    });
    let thinking: Duration = thinking.sum();
    let at_once = group.arrivals.peak_per_second() * thinking.as_secs_f64();
    (at_once > rows.count as f64).then(|| {
        format!(
            "`{}` has {} accounts, and about {} riders are on the way at its peak: some will share one",
            group.name,
            count(rows.count as u64),
            // Rounded for reading.
            count(at_once.round() as u64)
        )
    })
}

fn repeats(journey: &Journey) -> Vec<String> {
    let lines = journey.steps.iter().filter_map(|step| match &step.repeat {
        Repeat::Once => None,
        Repeat::Until(poll) => {
            let wanted = poll.until.iter();
            let wanted: Vec<String> = wanted
                .map(|(path, texts)| format!("{path} is {}", texts.join(" or ")))
                .collect();
            Some(format!(
                "{} polls every {} until {}, for {} at most",
                step.name,
                duration(poll.every),
                wanted.join(" and "),
                duration(poll.give_up)
            ))
        }
        Repeat::ForEach(candidates) => Some(format!(
            "{} tries up to {} of {} in turn",
            step.name, candidates.up_to, candidates.list
        )),
    });
    lines.collect()
}

fn closings(journey: &Journey) -> Option<String> {
    let names = journey.always.iter().map(|closing| {
        let unless = closing.unless.and_then(|step| journey.steps.get(step));
        match unless {
            Some(step) => format!("{} unless {} went well", closing.name, step.name),
            None => closing.name.clone(),
        }
    });
    let names: Vec<String> = names.collect();
    (!names.is_empty()).then(|| format!("however it ends: {}", names.join(", ")))
}

fn spans(journey: &Journey) -> Option<String> {
    let names = journey.spans.iter().map(|span| {
        let (from, to) = (&journey.steps[span.from], &journey.steps[span.to]);
        format!("{} ({} to {})", span.name, from.name, to.name)
    });
    let names: Vec<String> = names.collect();
    (!names.is_empty()).then(|| format!("measured as a whole: {}", names.join(", ")))
}

fn places(plan: &Plan, row: usize, group: &RiderGroup, journey: &Journey) -> Option<String> {
    let places = plan.target.places.get(journey.place?)?;
    let chooser = Chooser::new(&group.places, places.names.len(), plan.seed, row);
    let shares = (0..places.names.len()).map(|place| (chooser.share(place), place));
    let (share, place) = shares.reduce(|most, one| if one.0 > most.0 { one } else { most })?;
    let how = match &group.places {
        Choice::Even => {
            return Some(format!(
                "{} {}, evenly",
                count(places.names.len() as u64),
                places.name
            ));
        }
        Choice::Weighted(_) => "weighted".to_owned(),
        Choice::Zipf(exponent) => format!("Zipf {exponent}"),
    };
    Some(format!(
        "{} {}, {how}: {} gets {} of them",
        count(places.names.len() as u64),
        places.name,
        places.names[place],
        quantity::share(share)
    ))
}
