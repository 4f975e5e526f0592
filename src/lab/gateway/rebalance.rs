//! The operation that moves hubs to other shards, and the one that takes it back.

use super::Gateway;
use super::api::Problem;
use super::presence::Place;
use super::shard_map::lot;
use crate::lab::messages::{Moves, ToShard};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What an operation was asked to do: options from its query and its body.
#[derive(Debug, Clone, Default)]
pub struct Options(BTreeMap<String, String>);

impl Options {
    /// Options of a query, and those of a JSON object in the body, which win.
    ///
    /// # Errors
    /// If there is a body and it is no JSON object of texts and numbers.
    pub fn of(query: BTreeMap<String, String>, body: &[u8]) -> Result<Options, Problem> {
        let mut all = query;
        if !body.is_empty() {
            let wrong = || Problem::bad("the body must be a JSON object of texts and numbers");
            let Ok(Value::Object(given)) = serde_json::from_slice(body) else {
                return Err(wrong());
            };
            for (name, value) in given {
                let text = match value {
                    Value::String(text) => text,
                    Value::Number(number) => number.to_string(),
                    _ => return Err(wrong()),
                };
                all.insert(name, text);
            }
        }
        Ok(Options(all))
    }

    /// Refuses options other than these.
    ///
    /// # Errors
    /// For the first one that isn't among them.
    pub fn only(&self, known: &[&str]) -> Result<(), Problem> {
        match self.0.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) if known.is_empty() => Err(Problem::bad(format!(
                "there is no option `{name}`: this operation takes none"
            ))),
            Some(name) => Err(Problem::bad(format!(
                "there is no option `{name}`; known are {}",
                known.join(", ")
            ))),
        }
    }

    fn share(&self, default: u64) -> Result<f64, Problem> {
        let Some(text) = self.0.get("share") else {
            return Ok(default as f64);
        };
        text.trim_end_matches('%')
            .parse()
            .ok()
            .filter(|share| (0.0..=100.0).contains(share))
            .ok_or_else(|| {
                Problem::bad(format!(
                    "`share` is {text}; write a percentage from 0 to 100"
                ))
            })
    }

    fn moves(&self) -> Result<Moves, Problem> {
        let Some(text) = self.0.get("moves") else {
            return Ok(Moves::UseAnotherServer);
        };
        serde_json::from_value(Value::String(text.clone())).map_err(|_| {
            Problem::bad(format!(
                "`moves` is {text}; write one of disconnect-9c, disconnect-9d, 8b, fin, rst"
            ))
        })
    }
}

impl Gateway {
    /// Moves a share of the connected hubs to the next shard, by a new shard map.
    ///
    /// # Errors
    /// For options that can't be followed, or if there is only one shard.
    pub(super) async fn rebalance(&self, options: &Options) -> Result<Value, Problem> {
        options.only(&["share", "moves"])?;
        let share = options.share(self.settings.rebalance_share)?;
        let moves = options.moves()?;
        if self.shards < 2 {
            return Err(Problem::bad(
                "there is one shard, and nowhere to move hubs to; start the lab with more",
            ));
        }
        let mut connected = self.presence.hubs();
        let all = connected.len();
        // The same hubs in every run, whatever the order in which they came.
        connected.sort_by_cached_key(|(serial, _)| (lot(serial), serial.clone()));
        let count = (all as f64 * share / 100.0).round() as usize;
        connected.truncate(count);
        let hubs: Vec<(String, u16, u16)> = connected
            .iter()
            .map(|(serial, place)| {
                let to = self.map.behind(place.shard);
                (serial.clone(), place.shard, to)
            })
            .collect();
        let generation = self.map.rebalance(&hubs, moves.connack());
        for ((serial, place), (_, _, to)) in connected.into_iter().zip(&hubs) {
            self.send_on(serial, place, moves, *to).await;
        }
        Ok(json!({ "generation": generation, "connected": all, "moved": hubs.len() }))
    }

    /// Goes back to the first shard map, as a new one; hubs that are not where it has them are moved.
    ///
    /// # Errors
    /// For options that can't be followed.
    pub(super) async fn undo_rebalance(&self, options: &Options) -> Result<Value, Problem> {
        options.only(&["moves"])?;
        let moves = options.moves()?;
        let (generation, back) = self.map.undo(moves.connack());
        let mut told = 0;
        for (serial, place) in self.presence.hubs() {
            let Some(to) = back.get(&serial).filter(|to| **to != place.shard) else {
                continue;
            };
            told += 1;
            self.send_on(serial, place, moves, *to).await;
        }
        Ok(json!({ "generation": generation, "moved": told }))
    }

    /// Has its shard tell a hub to go to another.
    async fn send_on(&self, serial: String, place: Place, moves: Moves, to: u16) {
        let order = ToShard::Move {
            serial,
            generation: place.generation,
            moves,
            reference: self.map.address(to),
        };
        self.links.tell(place.shard, order).await;
    }
}
