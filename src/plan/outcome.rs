//! How an outcome is named, with the standard name of a broker's code.

use super::operation::OperationKind;
use super::session::MqttVersion;
use super::target::CommandSend;
use crate::event::{Outcome, reason, return_code};

impl super::Plan {
    /// How an action of the operation in this row ended, with the standard name of a broker's code.
    #[must_use]
    pub fn outcome_text(&self, row: usize, outcome: Outcome) -> String {
        let of_hubs = |hubs: usize| {
            let group = self.hubs.get(hubs)?;
            self.target.devices.get(group.device)
        };
        let device = match self.operations.get(row).map(|operation| operation.kind) {
            Some(
                OperationKind::Connect { hubs }
                | OperationKind::Telemetry { hubs }
                | OperationKind::Answer { hubs }
                | OperationKind::Reauthenticate { hubs },
            ) => of_hubs(hubs),
            Some(OperationKind::Issue { issuers }) => {
                let issuer = self.issuers.get(issuers);
                let command = issuer.and_then(|issuer| self.target.commands.get(issuer.command));
                command
                    .filter(|command| matches!(command.send, CommandSend::Publish(_)))
                    .and_then(|command| self.target.devices.get(command.to))
            }
            _ => None,
        };
        match device {
            Some(device) => device.version.outcome_text(outcome),
            None => outcome.to_string(),
        }
    }
}

impl MqttVersion {
    /// How something asked of a broker of this version ended, with the standard name of its code.
    #[must_use]
    pub fn outcome_text(self, outcome: Outcome) -> String {
        match (outcome, self) {
            // A broker that knows only 3.1.1 answers with a code of its own.
            (Outcome::Refused(code), MqttVersion::V311)
            | (Outcome::Refused(code @ 0..0x80), MqttVersion::V5) => {
                format!("{outcome} {}", return_code(code))
            }
            (Outcome::Refused(code), MqttVersion::V5) => {
                let name = reason(u8::try_from(code).unwrap_or(u8::MAX));
                format!("refused 0x{code:02X} {name}")
            }
            _ => outcome.to_string(),
        }
    }
}
