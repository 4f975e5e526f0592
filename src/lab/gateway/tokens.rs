//! Access tokens of riders: whose they are can be read from them, and only this gateway can make them.

use std::hash::{BuildHasher, RandomState};

/// Makes tokens and knows its own again.
#[derive(Debug, Default)]
pub struct Tokens {
    /// Random with every start of the gateway.
    key: RandomState,
}

impl Tokens {
    /// The token of an account.
    pub fn issue(&self, email: &str) -> String {
        format!("{:016x}.{email}", self.key.hash_one(email))
    }

    /// Whose token it is; `None` if this gateway has not issued it.
    pub fn owner<'a>(&self, token: &'a str) -> Option<&'a str> {
        let (_, email) = token.split_once('.')?;
        (self.issue(email) == token).then_some(email)
    }
}
