//! What is remembered of commands whose account is closed: two bits each, so that a late or second delivery is known as one.

use std::collections::VecDeque;

/// Commands of one group whose delivery is remembered after their account was closed.
pub const REMEMBERED: u64 = 1 << 22;

/// Two bits a command for the last [`REMEMBERED`] numbers: closed, and delivered.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    /// The first number held, a multiple of 32.
    first: u64,
    words: VecDeque<u64>,
}

impl Remembered {
    pub(super) fn set(&mut self, number: u64, delivered: bool) {
        if number < self.first {
            return;
        }
        let word = (number - self.first) / 32;
        while self.words.len() as u64 <= word {
            self.words.push_back(0);
        }
        let shift = (number % 32) * 2;
        let bits = if delivered { 0b11 } else { 0b01 };
        self.words[usize::try_from(word).unwrap_or(usize::MAX)] |= bits << shift;
        while self.words.len() as u64 > REMEMBERED / 32 {
            self.words.pop_front();
            self.first += 32;
        }
    }

    fn bits(&self, number: u64) -> u64 {
        if number < self.first {
            return 0b11;
        }
        let word = usize::try_from((number - self.first) / 32).unwrap_or(usize::MAX);
        self.words
            .get(word)
            .map_or(0, |word| word >> ((number % 32) * 2) & 0b11)
    }

    pub(super) fn knows(&self, number: u64) -> bool {
        self.bits(number) & 0b01 != 0
    }

    pub(super) fn was_delivered(&self, number: u64) -> bool {
        self.bits(number) & 0b10 != 0
    }
}
