//! Which shard of a device's broker a hub belongs to.

use super::carrier::{NotReady, Way, Who};
use crate::net::hosts::{Endpoint, Hosts};
use crate::net::tls::Terms;
use crate::plan::Template;
use crate::plan::identity::Rows;
use crate::plan::target::Device;

/// The way to each shard of a device, in the order of the file.
#[derive(Debug)]
pub(super) struct Shards {
    ways: Vec<Way>,
    /// As the file calls them.
    names: Vec<String>,
    /// `None` if no shard speaks TLS.
    terms: Option<Terms>,
}

impl Shards {
    pub(super) async fn of(device: &Device, hosts: &Hosts, who: Who) -> Result<Shards, NotReady> {
        let mut ways = Vec::new();
        for (name, address) in &device.shards {
            let place = format!("devices.{}.shards.{name}", device.name);
            ways.push(Way::to(&address.to_string(), place, device, hosts, who).await?);
        }
        let terms = if ways.iter().any(Way::is_secured) {
            Some(Terms::of(&device.tls, &hosts.trust()?)?)
        } else {
            None
        };
        Ok(Shards {
            ways,
            names: device.shards.iter().map(|(name, _)| name.clone()).collect(),
            terms,
        })
    }

    pub(super) fn count(&self) -> usize {
        self.ways.len()
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
        let by_name = self.names.iter().position(|name| name == place);
        let by_address = || {
            let endpoint = Endpoint::parse(place).ok()?;
            self.ways.iter().position(|way| *way.endpoint() == endpoint)
        };
        let by_host = || {
            let host = Endpoint::new(place, 0);
            let mut rows = (0..).zip(&self.ways);
            let mut matching = rows
                .by_ref()
                .filter(|(_, way)| way.endpoint().host() == host.host());
            let (row, _) = matching.next()?;
            matching.next().is_none().then_some(row)
        };
        by_name.or_else(by_address).or_else(by_host)
    }

    pub(super) fn way(&self, shard: usize) -> Option<&Way> {
        self.ways.get(shard)
    }

    /// How TLS is spoken, if it is.
    pub(super) fn terms(&self) -> Option<&Terms> {
        self.terms.as_ref()
    }
}

/// Who speaks: what the placeholders of a device stand for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Speaker<'a> {
    pub serial: &'a str,
    /// The rows of its identities, and which of them it is.
    pub columns: Option<(&'a Rows, u64)>,
}

/// A text of the target file for one client.
pub(super) fn render(template: &Template, speaker: Speaker<'_>) -> String {
    let mut text = String::new();
    template
        .render_into(&mut text, |name, out| value(name, speaker, out))
        .expect("names that nobody knows are refused when the target file is read");
    text
}

/// Appends what a placeholder stands for; false if nobody knows it.
pub(super) fn value(name: &str, speaker: Speaker<'_>, out: &mut String) -> bool {
    let text = match name {
        "serial" => Some(speaker.serial),
        _ => speaker
            .columns
            .and_then(|(rows, index)| rows.value(index, name)),
    };
    out.push_str(text.unwrap_or_default());
    text.is_some()
}
