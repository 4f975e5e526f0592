//! Tokens that requests carry: how one is had, and how long it lasts.

use super::Target;
use super::json_path::JsonPath;
use super::target::{CommandSend, Request};
use super::template::{JsonTemplate, Template};
use std::time::Duration;

/// One entry of the target's `tokens`.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenSpec {
    pub name: String,
    /// Asks for it.
    pub request: Request,
    /// Sent as a form in place of the request's JSON, if there is any.
    pub form: Vec<(String, Template)>,
    /// Where the token stands in the answer.
    pub keep: JsonPath,
    pub lasts: Lasts,
    /// How long before its end it is renewed.
    pub renew_before: Duration,
    pub per: Per,
}

/// Who shares a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Per {
    /// Everybody in the run.
    #[default]
    Run,
    /// The riders of one account; the row in `Target::identities` of the accounts.
    Account(usize),
}

/// How long a token lasts.
#[derive(Debug, Clone, PartialEq)]
pub enum Lasts {
    /// So many seconds stand in the answer; without them it lasts for ever.
    Stated(JsonPath),
    Fixed(Duration),
}

impl TokenSpec {
    pub(super) fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        self.request.each_template(each);
        self.form.iter_mut().for_each(|(_, value)| each(value));
    }

    pub(super) fn each_json(&mut self, each: &mut dyn FnMut(&mut JsonTemplate)) {
        self.request.json.iter_mut().for_each(each);
    }

    /// Whether a request carries it.
    #[must_use]
    pub fn is_in(&self, request: &Request) -> bool {
        let mut found = false;
        request.names(&mut |name| found |= name.strip_prefix("token.") == Some(&self.name));
        found
    }
}

impl Target {
    /// The rows of the tokens that these journeys and commands (rows of their lists) carry.
    #[must_use]
    pub fn tokens_of(&self, journeys: &[usize], commands: &[usize]) -> Vec<usize> {
        let carried = |token: &TokenSpec| {
            let journeys = journeys.iter().filter_map(|row| self.journeys.get(*row));
            let mut requests = journeys.flat_map(|journey| journey.requests());
            let commands = commands.iter().filter_map(|row| self.commands.get(*row));
            let mut commands = commands.filter_map(|command| match &command.send {
                CommandSend::Http(request) => Some(request),
                CommandSend::Publish(_) => None,
            });
            requests.any(|(_, request)| token.is_in(request))
                || commands.any(|request| token.is_in(request))
        };
        let rows = self.tokens.iter().enumerate();
        rows.filter(|(_, token)| carried(token))
            .map(|(row, _)| row)
            .collect()
    }
}
