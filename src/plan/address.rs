//! Every address that a target names.

use super::dock::DockDevice;
use super::target::{CommandSend, Find, Request, Target};

impl Target {
    /// Every address as the file writes it, each with its place in the file. The lab's own database is not among them: the lab
    /// contacts it, we do not.
    #[must_use]
    pub fn addresses(&self) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> = Vec::new();
        for device in &self.devices {
            let shards = device.shards.iter();
            all.extend(shards.map(|(shard, address)| {
                let place = format!("devices.{}.shards.{shard}", device.name);
                (place, address.to_string())
            }));
        }
        let mut request =
            |place: String, request: &Request| all.push((place, request.url.to_string()));
        for device in &self.devices {
            if let Some(sessions) = &device.live_sessions {
                let place = format!("devices.{}.live_sessions", device.name);
                request(place, &sessions.request);
            }
            if let Find::Ask(ask) = &device.find {
                request(format!("devices.{}.find.ask", device.name), &ask.request);
            }
        }
        self.tokens
            .iter()
            .for_each(|token| request(format!("tokens.{}", token.name), &token.request));
        for command in &self.commands {
            if let CommandSend::Http(send) = &command.send {
                request(format!("commands.{}", command.name), send);
            }
        }
        for journey in &self.journeys {
            for (name, send) in journey.requests() {
                let is_closing = journey.always.iter().any(|closing| closing.name == name);
                let list = if is_closing { "always" } else { "steps" };
                request(format!("journeys.{}.{list}.{name}", journey.name), send);
            }
        }
        for (place, send) in self.docks.iter().flat_map(DockDevice::requests) {
            request(place, send);
        }
        for operation in &self.operations {
            for (key, asked) in operation.requests() {
                request(format!("operations.{}.{key}", operation.name), asked);
            }
        }
        for source in &self.probes.sources {
            let place = format!("probes.sources.{}.{}", source.name, source.origin.key());
            let addresses = source.origin.addresses();
            all.extend(
                addresses
                    .iter()
                    .map(|address| (place.clone(), address.to_string())),
            );
        }
        for link in &self.links {
            let Some(addresses) = link.addresses() else {
                continue;
            };
            let proxy = addresses.proxy.as_ref().map(|proxy| &proxy.url);
            let named = [("listen", &addresses.listen), ("to", &addresses.to)];
            for (key, address) in named.into_iter().chain(proxy.map(|url| ("proxy", url))) {
                all.push((format!("links.{}.{key}", link.name), address.to_string()));
            }
        }
        for component in &self.components {
            all.extend(component.addresses().map(|(key, address)| {
                let place = format!("components.{}.{key}", component.name);
                (place, address.to_string())
            }));
        }
        all
    }
}
