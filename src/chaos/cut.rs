//! The fault `cut`: a share of the connections that a link carries now is ended. There is nothing to undo: who lost a connection comes
//! back by itself.

use super::proxy::carrier::Carrier;
use super::proxy::client::ProxyClient;
use super::proxy::wire::{CutAnswer, CutConnections};
use super::undo::Standing;
use crate::plan::fault::Cut;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long after the last one is due all must be seen to have ended.
const SEEN_WITHIN: Duration = Duration::from_secs(5);

/// The undo of a cut, which does nothing; it says in the journal where connections were cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AfterCut {
    pub link: String,
    pub proxy: Carrier,
}

/// A cut that is ready.
pub(super) struct Cutting {
    proxy: ProxyClient,
    link: String,
    order: CutConnections,
    /// Connections of the link that had been cut before.
    before: u64,
}

impl Cutting {
    pub(super) async fn arm(
        cut: &Cut,
        link: &str,
        id: String,
        seed: u64,
        proxy: &ProxyClient,
    ) -> Result<Cutting, String> {
        let order = CutConnections {
            id,
            share: cut.share,
            within_ms: u64::try_from(cut.within.as_millis()).unwrap_or(u64::MAX),
            by: cut.by,
            seed,
        };
        let mut cutting = Cutting {
            proxy: proxy.clone(),
            link: link.to_owned(),
            order,
            before: 0,
        };
        cutting.before = cutting.cut_so_far().await?;
        Ok(cutting)
    }

    pub(super) fn undo(&self) -> AfterCut {
        AfterCut {
            link: self.link.clone(),
            proxy: self.proxy.carrier().clone(),
        }
    }

    async fn cut_so_far(&self) -> Result<u64, String> {
        let links = self
            .proxy
            .links()
            .await
            .map_err(|error| error.to_string())?;
        let link = links.iter().find(|link| link.name == self.link);
        link.map(|link| link.cut)
            .ok_or_else(|| format!("the proxy carries no link `{}`", self.link))
    }

    /// Cuts, and waits until every chosen connection has ended. One that ended by itself meanwhile can't be cut any more.
    pub(super) async fn inject(&self) -> Result<String, String> {
        let answer = self.proxy.cut(&self.link, &self.order).await;
        let CutAnswer { chosen, of } = answer.map_err(|error| error.to_string())?;
        if chosen == 0 {
            return Err(format!(
                "{} carries {of} connections: none to cut",
                self.link
            ));
        }
        let due = Duration::from_millis(self.order.within_ms) + SEEN_WITHIN;
        let end = tokio::time::Instant::now() + due;
        loop {
            let cut = self.cut_so_far().await? - self.before;
            if cut >= chosen as u64 || (tokio::time::Instant::now() >= end && cut > 0) {
                return Ok(format!("{cut} of {of} connections on {} ended", self.link));
            }
            if tokio::time::Instant::now() >= end {
                return Err(format!(
                    "none of {chosen} connections on {} ended",
                    self.link
                ));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

impl AfterCut {
    pub(super) fn standing(&self) -> Standing {
        Standing::Healed(format!("nothing of a cut stays on {}", self.link))
    }
}

impl fmt::Display for AfterCut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "nothing: a cut on {} leaves nothing", self.link)
    }
}
