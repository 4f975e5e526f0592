//! The connections of hubs and publishers packet by packet, as a broker counts them, and what became of those of publishers.

use super::Report;
use super::data::PublisherRow;
use super::markdown::table;
use super::text::causes;
use crate::measure::figures;
use std::fmt::Write;

/// Why connections of publishers were lost, or did not come to stand; `None` if that never happened.
pub(super) fn publishers(row: &PublisherRow) -> Option<String> {
    let parts = [
        causes("losses by cause", &row.losses),
        causes("attempts to connect that failed", &row.failures),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The part of `report.md`.
pub(super) fn section(report: &Report, text: &mut String) {
    publishers_table(report, text);
    let of_hubs = report.hubs.iter().map(|row| (&row.group, &row.packets));
    let of_publishers = report
        .publishers
        .iter()
        .map(|row| (&row.device, &row.packets));
    let packets = of_hubs.chain(of_publishers).flat_map(|(name, packets)| {
        packets
            .iter()
            .filter(|packet| packet.sent + packet.received > 0)
            .map(|packet| {
                vec![
                    name.clone(),
                    packet.kind.clone(),
                    figures::count(packet.sent),
                    figures::count(packet.received),
                ]
            })
    });
    table(text, &["hubs", "packet", "sent", "received"], packets);
}

fn publishers_table(report: &Report, text: &mut String) {
    let rows = report.publishers.iter().map(|row| {
        let numbers = [row.opened, row.accepted, row.lost];
        std::iter::once(row.device.clone())
            .chain(numbers.iter().map(|number| figures::count(*number)))
            .collect()
    });
    if !report.publishers.is_empty() {
        let heading = ["publishers to", "TCP opened", "accepted", "lost"];
        table(text, &heading, rows);
    }
    for row in &report.publishers {
        if let Some(causes) = publishers(row) {
            let _ = writeln!(text, "publishers to {}: {causes}\n", row.device);
        }
    }
}
