//! Which certificates hubs showed, as report rows.

use super::Report;
use super::data::{CertificateExample, CertificateRow, SeenRow};
use crate::measure::Collector;
use crate::measure::figures;
use std::fmt::Write;

/// One row for each group of hubs that renews by plan.
pub(super) fn rows(collector: &Collector) -> Vec<CertificateRow> {
    let plan = collector.plan();
    let groups = plan.hubs.iter().zip(&collector.certificates().groups);
    let renewing = groups.filter_map(|(group, row)| Some((group, row.as_ref()?)));
    renewing
        .map(|(group, row)| CertificateRow {
            group: group.name.clone(),
            renewals: row.renewals,
            changed: row.changed(),
            handshakes_before: row.before,
            handshakes_new: row.new,
            handshakes_old: row.old,
            seen: plan.target.devices[group.device]
                .live_sessions
                .is_some()
                .then_some(SeenRow {
                    as_shown: row.seen.as_shown,
                    outdated: row.seen.outdated,
                    unknown: row.seen.unknown,
                    without: row.seen.without,
                }),
            examples: row
                .examples()
                .iter()
                .map(|example| CertificateExample {
                    hub: group.serial(u64::from(example.hub)),
                    before: example.before.to_string(),
                    after: example.after.to_string(),
                    seen_by_target: example.seen.map(|serial| serial.to_string()),
                })
                .collect(),
        })
        .collect()
}

/// The row in sentences, for the forms that people read.
pub(super) fn sentences(row: &CertificateRow) -> Vec<String> {
    let count = figures::count;
    let mut lines = vec![format!(
        "certificates: {} renewals, {} hubs have shown a new one since; handshakes: {} before, {} with the new one, {} still \
         with the old one",
        count(row.renewals),
        count(row.changed),
        count(row.handshakes_before),
        count(row.handshakes_new),
        count(row.handshakes_old)
    )];
    if let Some(seen) = row.seen {
        lines.push(format!(
            "sessions as the target saw them at the end: {} with the certificate last shown, {} with the one before, {} with \
             another, {} without",
            count(seen.as_shown),
            count(seen.outdated),
            count(seen.unknown),
            count(seen.without)
        ));
    }
    for example in &row.examples {
        let seen = example.seen_by_target.as_ref();
        lines.push(format!(
            "{}: serial number {} → {}{}",
            example.hub,
            example.before,
            example.after,
            seen.map_or_else(String::new, |seen| format!(", the target saw {seen}"))
        ));
    }
    lines
}

/// The part of `report.md`.
pub(super) fn section(report: &Report, text: &mut String) {
    if report.certificates.is_empty() {
        return;
    }
    let _ = writeln!(text, "## Certificates\n");
    for row in &report.certificates {
        for sentence in sentences(row) {
            let _ = writeln!(text, "- {}: {sentence}", row.group);
        }
    }
    text.push('\n');
}
