//! The tokens that requests carry, as `rushhour check` prints them.

use super::Outlook;
use crate::plan::quantity::duration;
use crate::plan::token::{Lasts, Per};
use std::fmt::{self, Formatter};

impl Outlook<'_> {
    pub(super) fn tokens(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        let journeys: Vec<usize> = plan.riders.iter().map(|group| group.journey).collect();
        let commands: Vec<usize> = plan.issuers.iter().map(|group| group.command).collect();
        let used = plan.target.tokens_of(&journeys, &commands);
        if used.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nTokens")?;
        for token in used.iter().filter_map(|row| plan.target.tokens.get(*row)) {
            let lasts = match &token.lasts {
                Lasts::Stated(path) => format!("lasts as long as {path} of the answer says"),
                Lasts::Fixed(lasts) => format!("lasts {}", duration(*lasts)),
            };
            let whose = match token.per {
                Per::Run => "had before the load, the same for everybody".to_owned(),
                Per::Account(set) => {
                    let accounts = plan.target.identities.get(set);
                    let accounts = accounts.map_or("", |set| set.name.as_str());
                    format!("one for each account of {accounts}, had when it is needed first")
                }
            };
            writeln!(
                out,
                "  {:<14} {whose}: {} {}, {lasts}, renewed {} before that",
                token.name,
                token.request.method.name(),
                token.request.url,
                duration(token.renew_before)
            )?;
        }
        Ok(())
    }
}
