//! Who sends commands, as `rushhour check` prints it.

use super::Outlook;
use super::identities;
use super::policy::policy;
use crate::plan::fleet::IssuerGroup;
use crate::plan::quantity::duration;
use crate::plan::target::{CommandSend, CommandSpec, IdOwner};
use std::fmt::{self, Formatter};

impl Outlook<'_> {
    pub(super) fn issuers(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        for group in &plan.issuers {
            let command = &plan.target.commands[group.command];
            writeln!(
                out,
                "  {:<14} issues {} to {}, in time within {}, alive for {}",
                group.name,
                command.name,
                plan.hubs[group.to].name,
                duration(group.in_time),
                duration(group.ttl)
            )?;
            let device = plan.target.devices.get(command.to);
            let place = device.and_then(|device| device.command.as_ref());
            let place = place.map_or_else(String::new, |taken| {
                format!("; hubs look for it at {}", taken.id)
            });
            writeln!(
                out,
                "  {:<14} {}; {}{place}",
                "",
                way(command),
                whose(command, group)
            )?;
            writeln!(
                out,
                "  {:<14} timeout {}, {}",
                "",
                duration(group.timeout),
                policy(&group.retry)
            )?;
            if let Some(tls) = &command.tls {
                writeln!(out, "  {:<14} {}", "", identities::of_requests(tls))?;
            }
        }
        Ok(())
    }
}

fn way(command: &CommandSpec) -> String {
    match &command.send {
        CommandSend::Http(request) => format!("{} {}", request.method.name(), request.url),
        CommandSend::Publish(publishing) => format!(
            "published to {} with QoS {}",
            publishing.topic, publishing.qos
        ),
    }
}

fn whose(command: &CommandSpec, group: &IssuerGroup) -> String {
    match (&command.id, group.idempotency) {
        (IdOwner::Theirs(path), _) => format!("its id is what {path} of the answer says"),
        (IdOwner::Ours, true) => "its id is ours, the same on every attempt".to_owned(),
        (IdOwner::Ours, false) => "its id is ours, another one on every attempt".to_owned(),
    }
}
