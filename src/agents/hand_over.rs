//! How a rider hands something to the dock at its station: which dock, and what it brings along.

use super::dock::Handed;
use crate::dice::Dice;
use crate::event::ReturnId;
use crate::plan::Plan;
use crate::plan::target::{Journey, StepAction};
use std::collections::HashMap;

/// The hand-over of one step of a journey, for one group of riders.
#[derive(Debug)]
pub(super) struct HandOver {
    /// Row in `Plan::docks`.
    pub docks: u16,
    sends: u16,
    /// What its request needs of the rider.
    names: Vec<String>,
    /// The dock (from 0) of each station.
    stations: HashMap<String, u32>,
}

impl HandOver {
    /// By step of the journey; `None` where nothing is handed over.
    pub fn of(plan: &Plan, journey: &Journey) -> Vec<Option<HandOver>> {
        let steps = journey.steps.iter();
        steps.map(|step| one(plan, &step.action)).collect()
    }

    /// The dock at the rider's place, or, where there is none of theirs, any.
    pub fn dock(&self, place: Option<&str>, dice: &mut Dice) -> u32 {
        let known = place.and_then(|place| self.stations.get(place));
        known.copied().unwrap_or_else(|| {
            let any = dice.below(self.stations.len() as u64);
            u32::try_from(any).unwrap_or_default()
        })
    }

    /// What the rider hands over; `value` knows what it has kept.
    pub fn handed(&self, id: ReturnId, value: impl Fn(&str, &mut String) -> bool) -> Handed {
        let values = self.names.iter().map(|name| {
            let mut text = String::new();
            // Names that no step before keeps are refused when the files are read.
            value(name, &mut text);
            (name.clone(), text)
        });
        Handed {
            id,
            sends: self.sends,
            values: values.collect(),
        }
    }
}

fn one(plan: &Plan, action: &StepAction) -> Option<HandOver> {
    let StepAction::HandOver { docks, sends } = action else {
        return None;
    };
    let row = plan.docks.iter().position(|group| group.name == *docks)?;
    let group = &plan.docks[row];
    let device = &plan.target.docks[group.device];
    let sent = device.row_of(sends)?;
    let mut names = device.sends[sent].names();
    names.sort_unstable();
    names.dedup();
    Some(HandOver {
        docks: u16::try_from(row).ok()?,
        sends: u16::try_from(sent).ok()?,
        names,
        stations: (0..group.count)
            .map(|index| (group.station(device, index), index))
            .collect(),
    })
}
