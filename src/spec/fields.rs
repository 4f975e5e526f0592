//! A map with known keys: what is missing, what is too much, what can't stand side by side.

use super::reader::At;
use super::shape::{Keys, Shape};
use super::tree::Entry;
use super::words;

/// A map that is read key by key; what nobody asked for is refused by [`Fields::finish`].
pub(super) struct Fields<'a> {
    at: At<'a>,
    entries: &'a [Entry],
    known: Vec<&'static str>,
    /// What is missing, and the remedy; told by `finish`, unless a key of a later version takes its place.
    missing: Vec<(String, String)>,
    /// Of each of these one must be there.
    needed: Vec<Vec<&'static str>>,
}

impl<'a> Fields<'a> {
    /// The entries of the map `at`.
    pub fn of(at: At<'a>, entries: &'a [Entry]) -> Fields<'a> {
        Fields {
            at,
            entries,
            known: Vec::new(),
            missing: Vec::new(),
            needed: Vec::new(),
        }
    }

    /// The map itself.
    pub fn at(&self) -> &At<'a> {
        &self.at
    }

    /// Whether the key is there, whatever stands behind it.
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    /// The value of a key that may be left out; a key with nothing behind it is refused.
    pub fn get(&mut self, key: &'static str) -> Option<At<'a>> {
        self.known.push(key);
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        let at = self.at.below(entry);
        if entry.node.is_null() {
            at.wrong(
                "nothing stands behind the colon",
                "give a value, or leave the key out",
            );
            return None;
        }
        Some(at)
    }

    /// The value of a key that must be there.
    pub fn need(&mut self, key: &'static str) -> Option<At<'a>> {
        self.needed.push(vec![key]);
        if !self.entries.iter().any(|entry| entry.key == key) {
            self.known.push(key);
            // A key close to it is reported as unknown, with this one as the remedy.
            let near = |entry: &Entry| words::nearest(&entry.key, [key].into_iter()).is_some();
            if !self.entries.iter().any(near) {
                self.missing
                    .push((format!("`{key}` is missing"), format!("add `{key}: …`")));
            }
            return None;
        }
        self.get(key)
    }

    /// Exactly one of several keys.
    pub fn one_of(&mut self, keys: &[&'static str]) -> Option<(&'static str, At<'a>)> {
        let given: Vec<&'static str> = keys
            .iter()
            .copied()
            .filter(|key| self.entries.iter().any(|entry| entry.key == *key))
            .collect();
        self.known.extend(keys);
        self.needed.push(keys.to_vec());
        match given.as_slice() {
            [key] => self.get(key).map(|at| (*key, at)),
            [] => {
                let slip =
                    |entry: &&Entry| words::nearest(&entry.key, keys.iter().copied()).is_some();
                if !self
                    .entries
                    .iter()
                    .any(|entry| slip(&entry) && !self.known.contains(&entry.key.as_str()))
                {
                    let all = words::listed(keys.iter().copied());
                    self.missing.push((
                        format!("one of {all} is missing"),
                        format!("add one of {all}"),
                    ));
                }
                None
            }
            [first, second, ..] => {
                let help = format!("keep one of {}", words::listed(given.iter().copied()));
                let at = self.get(second);
                self.get(first);
                if let Some(at) = at {
                    at.wrong_key(format!("`{second}` can't stand beside `{first}`"), help);
                }
                None
            }
        }
    }

    /// Refuses every key that was not asked for, and tells what is missing. `later` are keys that a later version will know.
    pub fn finish(self, later: &[&'static str]) {
        let mut known: Vec<&str> = Vec::new();
        self.known.iter().for_each(|key| {
            if !known.contains(key) {
                known.push(key);
            }
        });
        self.at.expect(Shape::Keys(Keys {
            known: self.known.iter().copied().collect(),
            needed: self.needed.iter().cloned().collect(),
        }));
        let mut is_of_later = false;
        for entry in self
            .entries
            .iter()
            .filter(|entry| !known.contains(&entry.key.as_str()))
        {
            let at = self.at.below(entry);
            if later.contains(&entry.key.as_str()) {
                is_of_later = true;
                at.wrong_key(
                    format!("`{}` is not supported in this version", entry.key),
                    "leave it out",
                );
                continue;
            }
            let near = words::nearest(&entry.key, known.iter().copied());
            let help = near.map_or("leave it out".to_owned(), |near| {
                format!("did you mean `{near}`?")
            });
            let all = words::listed(known.iter().copied());
            at.wrong_key(
                format!("unknown field `{}`, expected one of {all}", entry.key),
                help,
            );
        }
        if !is_of_later {
            for (message, help) in self.missing {
                self.at.wrong_key(message, help);
            }
        }
    }
}
