//! The links of the target, as `rushhour check` prints them.

use super::Outlook;
use std::fmt::{self, Formatter};

impl Outlook<'_> {
    /// Whose connections run through a proxy of ours.
    pub(super) fn links(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let target = &self.plan.target;
        if !target.links.is_empty() {
            writeln!(out, "\nLinks, through the fault proxy")?;
        }
        for link in &target.links {
            let what = target.link_ends(link);
            let by = match link
                .addresses()
                .and_then(|addresses| addresses.proxy.as_ref())
            {
                Some(proxy) => format!("the proxy at {}", proxy.url),
                None => "a proxy that the run starts".to_owned(),
            };
            writeln!(out, "  {:<14} {what}, by {by}", link.name)?;
        }
        Ok(())
    }
}
