//! Odd forms that every reader of YAML takes, and odd bytes.

use super::profile;
use rushhour::plan::Plan;
use rushhour::spec::Problems;

const PLAIN: &str = "duration: 1m\nsettle: 1.5m\ndrain: 500ms\nhubs:\n  homes: { device: hub, count: 8_000, timeout: 1.5s, keep_alive: 1m }\n";

fn must(read: Result<Plan, Problems>) -> Plan {
    read.unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn units_mean_what_they_say() {
    let plan = must(profile(PLAIN.as_bytes()));
    assert_eq!(plan.duration.as_secs(), 60);
    assert_eq!(
        (plan.settle.as_millis(), plan.drain.as_millis()),
        (90_000, 500)
    );
    assert_eq!(plan.hubs[0].count, 8_000);
    assert_eq!(plan.hubs[0].timeout.as_millis(), 1_500);
    assert_eq!(plan.hubs[0].keep_alive.as_secs(), 60);
}

#[test]
fn line_ends_and_byte_order_marks_change_nothing() {
    let plain = must(profile(PLAIN.as_bytes()));
    for text in [
        PLAIN.replace('\n', "\r\n"),
        format!("\u{feff}{PLAIN}"),
        format!("---\n{PLAIN}...\n"),
        format!("%YAML 1.2\n---\n{PLAIN}"),
        PLAIN.replace(": {", ":   {"),
        PLAIN.replace("1m", "'1m'"),
        PLAIN.replace("{ device: hub,", "{\tdevice: hub, # a remark\n   "),
    ] {
        let plan = must(profile(text.as_bytes()));
        assert_eq!(plan.hubs, plain.hubs, "{text:?}");
    }
}

#[test]
fn anchors_and_merge_keys_are_laid_out() {
    let text = "duration: 1m\nhubs:\n  homes: &home { device: hub, count: 10, timeout: 2s }\n  cabins: { <<: *home, count: 20 }\n  \
                ships: { count: 30, <<: [ *home, { timeout: 9s, keep_alive: 30s } ] }\n";
    let plan = must(profile(text.as_bytes()));
    let seen: Vec<_> = plan
        .hubs
        .iter()
        .map(|group| {
            (
                group.count,
                group.timeout.as_secs(),
                group.keep_alive.as_secs(),
            )
        })
        .collect();
    // The group's own value first, then the earlier map of the list.
    assert_eq!(seen, [(10, 2, 60), (20, 2, 60), (30, 2, 30)]);
}

#[test]
fn places_count_characters_even_behind_other_scripts_and_line_ends() {
    let text = "about: \u{fc}ber \u{96ea}\r\nduration: 1m\r\nhubs:\r\n  homes: { device: \"hub\", cuont: 5 }\r\n";
    let problems = profile(text.as_bytes())
        .err()
        .map(|problems| problems.to_string())
        .unwrap_or_default();
    assert!(problems.contains("profile.yaml:4:27"), "{problems}");
    assert!(
        problems.contains(
            "4 |   homes: { device: \"hub\", cuont: 5 }\n  |                           ^\n"
        ),
        "{problems}"
    );
}

#[test]
fn files_that_are_no_profiles_are_refused_quickly() {
    let large = format!("about: {}\n", "x".repeat(1024 * 1024));
    let problems = profile(large.as_bytes())
        .err()
        .map(|problems| problems.to_string())
        .unwrap_or_default();
    assert!(problems.contains("larger than 1 MiB"), "{problems}");
    for bytes in [&[0u8; 64][..], b"\xff\xfea\0:\0", b"\x7fELF\x02\x01"] {
        assert!(profile(bytes).is_err());
    }
}

proptest::proptest! {
    /// Whatever the bytes, the answer is a plan or problems, never a panic.
    #[test]
    fn no_bytes_bring_the_reader_down(text in "[ \\t\\r\\na-c0-9:,{}\\[\\]&*<|>%#'\"!?.~-]{0,80}") {
        let _ = profile(text.as_bytes());
        let _ = profile(format!("{PLAIN}about: {text}\n").as_bytes());
    }
}
