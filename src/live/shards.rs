//! Which shard of a device's broker a hub belongs to, and how it introduces itself there.

use super::mqtt::Packet;
use crate::net::hosts::{Endpoint, HostError, Hosts, Peer};
use crate::plan::Template;
use crate::plan::routing::shard_of;
use crate::plan::target::{Device, Find};
use rumqttc::mqttbytes::v4::{Connect, Login};
use std::time::Duration;

/// The permitted peers of each shard of a device, in the order of the file.
#[derive(Debug)]
pub(super) struct Shards {
    peers: Vec<Vec<Peer>>,
    /// Name and address of each.
    named: Vec<(String, Endpoint)>,
    find: Find,
}

impl Shards {
    pub(super) async fn of(device: &Device, hosts: &Hosts) -> Result<Shards, HostError> {
        let (mut peers, mut named) = (Vec::new(), Vec::new());
        for (name, address) in &device.shards {
            let text = address.to_string();
            let endpoint = Endpoint::parse(&text).map_err(|why| HostError::BadAddress {
                place: format!("devices.{}.shards.{name}", device.name),
                text,
                why,
            })?;
            peers.push(hosts.peers(&endpoint).await?);
            named.push((name.clone(), endpoint));
        }
        Ok(Shards {
            peers,
            named,
            find: device.find.clone(),
        })
    }

    pub(super) fn count(&self) -> usize {
        self.peers.len()
    }

    /// The shard of the hub with this serial number.
    pub(super) fn of_serial(&self, serial: &str) -> usize {
        shard_of(&self.find, self.peers.len(), serial)
    }

    /// The shard that a text of the target names: by its name in the file, its host and port, or its host where only one shard
    /// has it. A Server Reference may name several servers, with spaces between them; the first one known counts.
    pub(super) fn named(&self, text: &str) -> Option<u16> {
        let row = text
            .split_whitespace()
            .find_map(|place| self.row_of(place))?;
        u16::try_from(row).ok()
    }

    fn row_of(&self, place: &str) -> Option<usize> {
        let by_name = self.named.iter().position(|(name, _)| name == place);
        let by_address = || {
            let endpoint = Endpoint::parse(place).ok()?;
            self.named.iter().position(|(_, known)| *known == endpoint)
        };
        let by_host = || {
            let host = Endpoint::new(place, 0);
            let mut rows = (0..).zip(&self.named);
            let mut matching = rows
                .by_ref()
                .filter(|(_, (_, known))| known.host() == host.host());
            let (row, _) = matching.next()?;
            matching.next().is_none().then_some(row)
        };
        by_name.or_else(by_address).or_else(by_host)
    }

    /// The peer for the n-th client of a shard: clients spread over all addresses of a name.
    pub(super) fn peer(&self, shard: usize, nth: u64) -> Option<Peer> {
        let peers = self.peers.get(shard)?;
        let place = usize::try_from(nth % peers.len().max(1) as u64).unwrap_or_default();
        peers.get(place).copied()
    }
}

/// A text of the target file for one client; `<command>` is known where there is one.
pub(super) fn render(template: &Template, serial: &str, command: Option<&str>) -> String {
    let mut text = String::new();
    template
        .render_into(&mut text, |name, out| value(name, serial, command, out))
        .expect("names that nobody knows are refused when the target file is read");
    text
}

/// Appends what a placeholder stands for; false if nobody knows it.
pub(super) fn value(name: &str, serial: &str, command: Option<&str>, out: &mut String) -> bool {
    let text = match name {
        "serial" => Some(serial),
        "command" => command,
        _ => None,
    };
    out.push_str(text.unwrap_or_default());
    text.is_some()
}

/// The CONNECT of a client. `serial` is what `<serial>` stands for in user name and password.
pub(super) fn greeting(
    device: &Device,
    client_id: String,
    serial: &str,
    keep_alive: Duration,
) -> Packet {
    let mut connect = Connect::new(client_id);
    // Whole seconds on the wire; rounded up, since 0 would mean none.
    let seconds = keep_alive.as_secs() + u64::from(keep_alive.subsec_nanos() > 0);
    connect.keep_alive = u16::try_from(seconds).unwrap_or(u16::MAX);
    connect.clean_session = device.clean_start;
    connect.login = device.username.as_ref().map(|username| Login {
        username: render(username, serial, None),
        password: device
            .password
            .as_ref()
            .map_or_else(String::new, |password| render(password, serial, None)),
    });
    Packet::Connect(connect)
}
