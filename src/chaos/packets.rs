//! The fault `drop`: packets to and from an address are dropped by nftables on this machine, in a table of our own. The undo deletes
//! exactly this table; nothing else of the rules is ever touched.

use super::command::{CommandError, StoredCommand};
use super::request::{accepts, peers};
use super::undo::Standing;
use crate::plan::component::Dropped;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Longest name that nftables takes for a table is far above; this keeps it readable.
const LONGEST_TABLE: usize = 60;

/// The undo: there is no table of this name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteTable {
    pub component: String,
    pub table: String,
    /// `nft`; its arguments are added.
    pub nft: StoredCommand,
}

/// Rules that are ready to be set.
pub(super) struct DropPackets {
    /// `host:port`
    address: String,
    never: Vec<String>,
    rules: String,
    undo: DeleteTable,
}

impl DropPackets {
    /// `id` names the run and the fault.
    pub(super) async fn arm(
        component: &str,
        address: &str,
        dropped: Dropped,
        id: &str,
        never: &[String],
        cli: &BTreeMap<String, PathBuf>,
    ) -> Result<DropPackets, String> {
        let nft = StoredCommand::cli("nft", cli, &[]).map_err(text)?;
        let undo = DeleteTable {
            component: component.to_owned(),
            table: table_name(id),
            nft,
        };
        if undo.exists().await? {
            return Err(format!("nftables has a table {} already", undo.table));
        }
        let peers = peers(address, never).await?;
        if !accepts(address, never)
            .await
            .map_err(|error| error.to_string())?
        {
            return Err(format!(
                "{address} takes no connection, so nobody could see that packets are dropped"
            ));
        }
        Ok(DropPackets {
            address: address.to_owned(),
            never: never.to_vec(),
            rules: rules(&undo.table, &peers, dropped),
            undo,
        })
    }

    pub(super) fn undo(&self) -> DeleteTable {
        self.undo.clone()
    }

    /// All rules or none: nftables reads the whole before it changes anything (nft(8), `-f`).
    pub(super) async fn inject(&self) -> Result<(), String> {
        let set = self.undo.nft.with(&["--file", "-"]);
        let set = set.reading(self.rules.clone()).succeed().await;
        set.map(|_| ()).map_err(text)
    }

    /// A connection of our own meets the rules.
    pub(super) async fn observe(&self) -> Result<String, String> {
        let open = accepts(&self.address, &self.never).await;
        if open.map_err(|error| error.to_string())? {
            return Err(format!("{} still takes connections", self.address));
        }
        let list = ["--json", "list", "table", "inet", &self.undo.table];
        let listed = self.undo.nft.with(&list).succeed().await.map_err(text)?;
        match dropped(&listed) {
            0 => Err("the rules have dropped no packet".to_owned()),
            packets => Ok(format!(
                "{} takes no connection; {packets} packets dropped so far",
                self.address
            )),
        }
    }
}

/// The addresses that would be cut off, and what would undo it.
pub(super) async fn look(
    address: &str,
    never: &[String],
    cli: &BTreeMap<String, PathBuf>,
) -> Result<(String, String), String> {
    let nft = StoredCommand::cli("nft", cli, &[]).map_err(text)?;
    let listed = nft.with(&["--json", "list", "tables"]).succeed().await;
    listed.map_err(text)?;
    let peers = peers(address, never).await?;
    let peers: Vec<String> = peers.iter().map(ToString::to_string).collect();
    Ok((
        format!("packets of {address} ({})", peers.join(", ")),
        "the table of nftables that holds the rules is deleted".to_owned(),
    ))
}

/// Packets that the counters of a listed table have seen.
fn dropped(listed: &str) -> u64 {
    let document: Value = serde_json::from_str(listed).unwrap_or_default();
    let items = document["nftables"].as_array().into_iter().flatten();
    items
        .flat_map(|item| item["rule"]["expr"].as_array().into_iter().flatten())
        .filter_map(|part| part["counter"]["packets"].as_u64())
        .sum()
}

fn rules(table: &str, peers: &[SocketAddr], dropped: Dropped) -> String {
    let mut out = Vec::new();
    let mut input = Vec::new();
    for peer in peers {
        let family = if peer.is_ipv4() { "ip" } else { "ip6" };
        let (host, port) = (peer.ip(), peer.port());
        out.push(format!(
            "{family} daddr {host} tcp dport {port} counter drop"
        ));
        input.push(format!(
            "{family} saddr {host} tcp sport {port} counter drop"
        ));
    }
    // `forward` sees what this machine carries for others, such as its containers.
    let mut chains = Vec::new();
    for (hook, rules, wanted) in [
        ("output", &out, dropped != Dropped::From),
        ("input", &input, dropped != Dropped::To),
    ] {
        if wanted {
            chains.push(chain(hook, rules));
        }
    }
    let forward = match dropped {
        Dropped::To => out,
        Dropped::From => input,
        Dropped::Both => [out, input].concat(),
    };
    chains.push(chain("forward", &forward));
    format!("table inet {table} {{\n{}}}\n", chains.concat())
}

fn chain(hook: &str, rules: &[String]) -> String {
    format!(
        "  chain {hook} {{\n    type filter hook {hook} priority 0; policy accept;\n    {}\n  }}\n",
        rules.join("\n    ")
    )
}

fn table_name(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = format!("rushhour_{id}").chars().map(plain).collect();
    name.chars().take(LONGEST_TABLE).collect()
}

impl DeleteTable {
    pub(super) async fn standing(&self) -> Result<Standing, String> {
        Ok(match self.exists().await? {
            true => Standing::Stands(format!("nftables has the table {}", self.table)),
            false => Standing::Healed(format!("nftables has no table {}", self.table)),
        })
    }

    pub(super) async fn perform(&self) -> Result<String, String> {
        let delete = self.nft.with(&["delete", "table", "inet", &self.table]);
        delete.succeed().await.map_err(text)?;
        Ok(format!("deleted the table {} of nftables", self.table))
    }

    async fn exists(&self) -> Result<bool, String> {
        let list = self.nft.with(&["--json", "list", "tables"]);
        let listed = list.succeed().await.map_err(text)?;
        let document: Value = serde_json::from_str(&listed)
            .map_err(|error| format!("{list} printed something else than JSON: {error}"))?;
        let mut items = document["nftables"].as_array().into_iter().flatten();
        Ok(items.any(|item| item["table"]["name"] == self.table.as_str()))
    }
}

fn text(error: CommandError) -> String {
    error.to_string()
}

impl fmt::Display for DeleteTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "let packets of {} pass: delete the table {} of nftables",
            self.component, self.table
        )
    }
}
