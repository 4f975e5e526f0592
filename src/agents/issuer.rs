//! What an issuer decides: one command, handed over with the same id on every attempt.
//!
//! What becomes of the command afterwards (in time, late, lost) is the ledger's business; the issuer only stops trying
//! when its time to live has passed. The hub that a command is for is drawn from the seed, the group and the number alone, so that a
//! hub can tell a command that was meant for another.

use super::attempt::Attempts;
use super::{Action, Agent, Context, Input, Order, Reply, ReplyResult, Timer};
use crate::event::{CommandId, CommandName, CommandStep, Event, Offset, OperationId, Outcome};
use crate::plan::command::{CommandSend, IdOwner};
use crate::plan::json_path::JsonPath;
use crate::plan::routing::hub_of;
use crate::plan::{HubGroup, OperationKind, Plan};
use crate::retry::Retry;
use std::sync::Arc;
use std::time::Duration;

/// What all issuers of a group share.
#[derive(Debug)]
pub struct IssuerConfig {
    group: u16,
    run_tag: String,
    seed: u64,
    send: CommandSend,
    id: IdOwner,
    idempotency: bool,
    hubs: HubGroup,
    operation: OperationId,
    timeout: Duration,
    retry: Retry,
    ttl: Duration,
}

impl IssuerConfig {
    /// The issuers of row `group` of `plan.issuers`; the tag is that of [`CommandId::wire`].
    #[must_use]
    pub fn of(plan: &Plan, group: usize, run_tag: &str) -> IssuerConfig {
        let issuers = &plan.issuers[group];
        IssuerConfig {
            group: u16::try_from(group).expect("a plan has fewer than 65,536 groups"),
            run_tag: run_tag.to_owned(),
            seed: plan.seed,
            send: plan.target.commands[issuers.command].send.clone(),
            id: plan.target.commands[issuers.command].id.clone(),
            idempotency: issuers.idempotency,
            hubs: plan.hubs[issuers.to].clone(),
            operation: plan
                .operation(OperationKind::Issue { issuers: group })
                .expect("the table of operations has a row for every group of issuers"),
            timeout: issuers.timeout,
            retry: issuers.retry,
            ttl: issuers.ttl,
        }
    }
}

/// One command on its way to the target.
#[derive(Debug)]
pub struct Issuer {
    config: Arc<IssuerConfig>,
    number: u64,
    state: State,
    attempts: Attempts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    AwaitingReply,
    AwaitingRetry,
    Done,
}

impl Issuer {
    /// The issuer of arrival `number` (from 1).
    #[must_use]
    pub fn new(config: &Arc<IssuerConfig>, number: u64) -> Issuer {
        Issuer {
            config: Arc::clone(config),
            number,
            state: State::New,
            attempts: Attempts::none(config.operation),
        }
    }

    /// The command's id, the same on every attempt.
    #[must_use]
    pub fn command(&self) -> CommandId {
        CommandId {
            issuer: self.config.group,
            number: self.number,
        }
    }

    /// The index within its group of the hub that the command is for.
    #[must_use]
    pub fn hub(&self) -> u64 {
        hub_of(self.config.seed, self.command(), self.config.hubs.count)
    }

    /// How the command is handed over.
    #[must_use]
    pub fn send(&self) -> &CommandSend {
        &self.config.send
    }

    /// Where the target's answer names the id that it has given to the command, if it does.
    #[must_use]
    pub fn given_id(&self) -> Option<&JsonPath> {
        match &self.config.id {
            IdOwner::Ours => None,
            IdOwner::Theirs(path) => Some(path),
        }
    }

    /// The id under which the attempt travels that is under way.
    fn name(&self) -> CommandName {
        let before = match self.config.idempotency {
            true => 0,
            false => self.attempts.made().saturating_sub(1),
        };
        CommandName {
            command: self.command(),
            copy: u8::try_from(before).unwrap_or(u8::MAX),
        }
    }

    /// Appends what `<name>` stands for: `command` and `command.uuid` (the id as it travels), and `serial` and the other columns of the
    /// hub's identity. False if the name is unknown.
    pub fn value(&self, name: &str, out: &mut String) -> bool {
        if self.name().value(name, &self.config.run_tag, out) {
            return true;
        }
        self.config.hubs.placeholder(self.hub(), name, out)
    }

    fn tell(&self, step: CommandStep, at: Offset, out: &mut Vec<Action>) {
        out.push(Action::Tell(Event::Command {
            id: self.command(),
            step,
            at,
        }));
    }

    fn attempt(&mut self, now: Offset, context: &Context<'_>, out: &mut Vec<Action>) {
        self.attempts.attempt(now, context, out);
        self.tell(CommandStep::Sent, now, out);
        self.state = State::AwaitingReply;
        out.push(Action::Request {
            timeout: self.config.timeout,
        });
    }

    fn reply(
        &mut self,
        now: Offset,
        reply: Reply<'_>,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        let (outcome, step) = self.read(reply.result);
        self.attempts.answered(now, outcome, out);
        self.tell(step, now, out);
        let open = !matches!(step, CommandStep::Accepted | CommandStep::Expired);
        if open {
            // Nobody waits for a command whose time to live has passed.
            let last = Some(self.attempts.due().after(self.config.ttl));
            let ended = (outcome, reply.retry_after);
            let retry = &self.config.retry;
            if let Some(at) = self.attempts.next(now, retry, ended, last, context, out) {
                self.state = State::AwaitingRetry;
                out.push(Action::WakeAt(Timer::Wait, at));
                return;
            }
            self.tell(CommandStep::GaveUp, now, out);
        }
        self.attempts.finish(now, outcome, out);
        self.state = State::Done;
        out.push(Action::Done);
    }

    fn read(&self, result: ReplyResult) -> (Outcome, CommandStep) {
        match (result, &self.config.send) {
            (ReplyResult::Accepted, _) => (Outcome::Ok, CommandStep::Accepted),
            (ReplyResult::Failed(outcome), _) => (outcome, step_of(outcome)),
            (ReplyResult::Status(_), CommandSend::Publish(_)) => {
                (Outcome::Protocol, CommandStep::InDoubt)
            }
            (ReplyResult::Status(status), CommandSend::Http(request)) => {
                let answer = &request.answer;
                if answer.is_ok(status) {
                    (Outcome::Ok, CommandStep::Accepted)
                } else if answer.expired.contains(&status) {
                    (Outcome::Refused(status), CommandStep::Expired)
                } else if answer.declined.contains_key(&status) {
                    (Outcome::Declined, CommandStep::Refused)
                } else {
                    (Outcome::Refused(status), step_of(Outcome::Refused(status)))
                }
            }
        }
    }
}

/// What an attempt that was not accepted says about the command. "In doubt" is whatever leaves open that the target has it: no answer, a
/// connection that broke, an answer that can't be read, and a 5xx by which a gateway tells that something behind it went wrong (all but
/// 503, which says that it was not taken).
fn step_of(outcome: Outcome) -> CommandStep {
    match outcome {
        Outcome::Ok => CommandStep::Accepted,
        Outcome::NotSent => CommandStep::NotSent,
        Outcome::TimedOut | Outcome::Reset | Outcome::Protocol => CommandStep::InDoubt,
        Outcome::Refused(code) if code != 503 && (500..600).contains(&code) => CommandStep::InDoubt,
        Outcome::Refused(_) | Outcome::Declined | Outcome::Unreachable | Outcome::Tls(_) => {
            CommandStep::Refused
        }
    }
}

impl Agent for Issuer {
    fn on(
        &mut self,
        now: Offset,
        input: Input<'_>,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        match (self.state, input) {
            (State::New, Input::Due { due }) => {
                self.tell(CommandStep::Due, due, out);
                self.attempts = Attempts::start(self.config.operation, due, now, out);
                self.attempt(now, context, out);
            }
            (State::AwaitingRetry, Input::Timer(Timer::Wait)) => self.attempt(now, context, out),
            (State::AwaitingReply, Input::Reply(reply)) => self.reply(now, reply, context, out),
            (State::New, Input::Told(Order::Leave | Order::Stop)) => {
                self.state = State::Done;
                out.push(Action::Done);
            }
            (
                State::AwaitingReply | State::AwaitingRetry,
                Input::Told(Order::Leave | Order::Stop),
            ) => {
                self.attempts.unfinished(now, out);
                self.state = State::Done;
                out.push(Action::Done);
            }
            _ => {}
        }
    }
}
