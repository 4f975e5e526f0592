//! A target that follows a script: what becomes of each attempt to connect, of each session and of each request.

use super::plans::millis;
use rushhour::agents::ReplyResult;
use rushhour::dice::Dice;
use rushhour::event::{Offset, Outcome};
use rushhour::plan;
use std::time::Duration;

/// What becomes of an attempt to connect.
#[derive(Debug, Clone, Copy)]
pub enum Connect {
    Works,
    /// Ends with this before a TCP connection stands.
    Fails(Outcome),
    /// CONNACK with this return code.
    RefusesLogin(u16),
    /// Accepts the connection and never says CONNACK.
    Silence,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy)]
pub enum Answer {
    /// What the target file calls a success.
    Right,
    Reply(ReplyResult),
    /// Nothing until the timeout.
    Silence,
}

type Script<T> = Box<dyn FnMut(Offset, &mut Dice) -> T>;

/// The script, with the dice that its decisions may use.
pub struct Target {
    pub dice: Dice,
    pub connect: Script<Connect>,
    /// Where a hub that asks is sent.
    pub find: Script<Result<u16, Outcome>>,
    /// How long a session lives before the target ends it.
    pub session: Script<Option<Duration>>,
    pub request: Script<Answer>,
    /// Whether pings are answered.
    pub pong: Script<bool>,
    /// Whether publishes are acknowledged.
    pub acknowledge: Script<bool>,
    /// Time for each way through the network is between these.
    pub latency: (Duration, Duration),
    /// The body of every answer.
    pub body: &'static str,
}

impl Target {
    /// A target that does everything right.
    pub fn healthy(seed: u64) -> Target {
        Target {
            dice: Dice::named(seed, 99, 0),
            connect: Box::new(|_, _| Connect::Works),
            find: Box::new(|_, _| Ok(0)),
            session: Box::new(|_, _| None),
            request: Box::new(|_, _| Answer::Right),
            pong: Box::new(|_, _| true),
            acknowledge: Box::new(|_, _| true),
            latency: (millis(1), millis(20)),
            body: r#"{"bikes":[{"id":"bike-7"}],"trip_id":"trip-9","id":"c","state":"started","access_token":"t"}"#,
        }
    }

    /// A target that now and then does everything wrong.
    pub fn unreliable(seed: u64) -> Target {
        Target {
            connect: Box::new(|_, dice| match dice.below(10) {
                0 => Connect::Fails(Outcome::Unreachable),
                1 => Connect::RefusesLogin(3),
                2 => Connect::Silence,
                3 => Connect::Fails(Outcome::NotSent),
                _ => Connect::Works,
            }),
            find: Box::new(|_, dice| match dice.below(6) {
                0 => Err(Outcome::TimedOut),
                1 => Err(Outcome::Refused(503)),
                shard => Ok((shard % 2) as u16),
            }),
            session: Box::new(|_, dice| (dice.below(4) == 0).then(|| millis(dice.below(40_000)))),
            request: Box::new(|_, dice| match dice.below(12) {
                0 => Answer::Silence,
                1 => Answer::Reply(ReplyResult::Failed(Outcome::Unreachable)),
                2 => Answer::Reply(ReplyResult::Failed(Outcome::Reset)),
                3 => Answer::Reply(ReplyResult::Failed(Outcome::NotSent)),
                4 => Answer::Reply(ReplyResult::Failed(Outcome::Protocol)),
                5 => Answer::Reply(ReplyResult::Status(503)),
                6 => Answer::Reply(ReplyResult::Status(404)),
                7 => Answer::Reply(ReplyResult::Status(409)),
                8 => Answer::Reply(ReplyResult::Status(410)),
                _ => Answer::Right,
            }),
            pong: Box::new(|_, dice| dice.below(20) > 0),
            acknowledge: Box::new(|_, dice| dice.below(5) > 0),
            ..Target::healthy(seed)
        }
    }

    pub fn delay(&mut self) -> Duration {
        self.dice.between(self.latency.0, self.latency.1)
    }
}

/// Renders a request as a driver would; what the lab and secrets are called is no affair of the agents.
///
/// # Panics
/// If a name is unknown.
pub fn render(request: &plan::target::Request, value: &dyn Fn(&str, &mut String) -> bool) {
    let known = |name: &str, out: &mut String| {
        value(name, out) || name.starts_with("lab.") || name.starts_with("secret.")
    };
    let mut text = String::new();
    let headers = request.headers.iter().map(|(_, value)| value);
    for template in headers.chain([&request.url]).chain(&request.bearer) {
        template
            .render_into(&mut text, known)
            .expect("every name is known by now");
    }
    if let Some(json) = &request.json {
        json.render(&mut |name, out| known(name, out))
            .expect("every name is known by now");
    }
}
