//! The cases on which existing parsers lose lines or whole scrapes (field notes on probes, §4), and that nothing breaks the scanner.

use proptest::prelude::*;
use rushhour::probe::prometheus::{Series, scan};

fn only(text: &str) -> Series {
    let scan = scan(text.as_bytes(), |_| true);
    assert_eq!((scan.bad_lines, scan.duplicate_lines), (0, 0), "{text:?}");
    assert_eq!(scan.series.len(), 1, "{text:?}: {:?}", scan.series);
    scan.series.into_iter().next().unwrap()
}

/// What a line gives: name, labels, value.
fn check(text: &str, name: &str, labels: &[(&str, &str)], value: f64) {
    let series = only(text);
    let read: Vec<_> = series
        .labels
        .iter()
        .map(|(label, value)| (label.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        (series.name.as_str(), read.as_slice()),
        (name, labels),
        "{text:?}"
    );
    assert!(
        series.value == value || (series.value.is_nan() && value.is_nan()),
        "{text:?}: {}",
        series.value
    );
}

#[test]
fn every_case_that_existing_parsers_lose_is_read() {
    check("up 1", "up", &[], 1.0);
    check("up{} 1", "up", &[], 1.0);
    check("up{a=\"}\"} 1", "up", &[("a", "}")], 1.0);
    check(
        "up{a=\"{\",b=\"x\"} 1",
        "up",
        &[("a", "{"), ("b", "x")],
        1.0,
    );
    check("job:up:rate5m 0.5", "job:up:rate5m", &[], 0.5);
    check("{\"my.metric\"} 2", "my.metric", &[], 2.0);
    check("{\"my.metric\",a=\"b\"} 2", "my.metric", &[("a", "b")], 2.0);
    check(
        "{a=\"b\", \"my.metric\"} 2",
        "my.metric",
        &[("a", "b")],
        2.0,
    );
    check(
        "up{\"label.with.dots\"=\"x\"} 1",
        "up",
        &[("label.with.dots", "x")],
        1.0,
    );
    check("up{a=\"x,y\"} 1", "up", &[("a", "x,y")], 1.0);
    check("up{a=\"x=y\"} 1", "up", &[("a", "x=y")], 1.0);
    check(
        r#"up{a="c:\\d\n\"e\""} 1"#,
        "up",
        &[("a", "c:\\d\n\"e\"")],
        1.0,
    );
    check(r#"up{a="\q"} 1"#, "up", &[("a", "\\q")], 1.0);
    check("up{a=\"x\",} 1", "up", &[("a", "x")], 1.0);
    check(
        "up{ a = \"x\" , b = \"y\" } 1",
        "up",
        &[("a", "x"), ("b", "y")],
        1.0,
    );
    check("  up  {a=\"x\"}   1  ", "up", &[("a", "x")], 1.0);
    check("up\t1\t1700000000000", "up", &[], 1.0);
    check("up 1 1700000000.123", "up", &[], 1.0);
    check("up 1\r", "up", &[], 1.0);
    check("up{a=\"x\"}1", "up", &[("a", "x")], 1.0);
    check(
        "up{b=\"2\",a=\"1\"} 1",
        "up",
        &[("a", "1"), ("b", "2")],
        1.0,
    );
    check("up +Inf", "up", &[], f64::INFINITY);
    check("up -Inf", "up", &[], f64::NEG_INFINITY);
    check("up NaN", "up", &[], f64::NAN);
    check("up 1.5e+06", "up", &[], 1.5e6);
    check("up{a=\"ü∞\"} 1", "up", &[("a", "ü∞")], 1.0);
    check("\u{feff}up 1", "up", &[], 1.0);
}

#[test]
fn exemplars_and_the_end_mark_of_openmetrics_are_read_over() {
    let text = "# TYPE wait histogram\nwait_bucket{le=\"1\"} 17 # {trace_id=\"a}b\"} 0.67 1700000000.5\n\
                wait_bucket{le=\"+Inf\"} 20 1700000000.5 # {} 3\nwait_created 1.7e9\n# EOF\n";
    let scan = scan(text.as_bytes(), |name| name.starts_with("wait_bucket"));
    let values: Vec<_> = scan.series.iter().map(|series| series.value).collect();
    assert_eq!((values, scan.bad_lines), (vec![17.0, 20.0], 0));
}

#[test]
fn interleaved_families_comments_and_odd_types_lose_nothing() {
    let text = "# HELP a Something.\n# a comment between\n# TYPE a gauge\na{x=\"1\"} 1\nb 2\na{y=\"1\",z=\"2\"} 3\n\
                # TYPE i info\ni{version=\"1\"} 1\n# TYPE u unknown\nu 4\n\n\n#\na 5";
    let scan = scan(text.as_bytes(), |_| true);
    let names: Vec<_> = scan
        .series
        .iter()
        .map(|series| series.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b", "a", "i", "u", "a"]);
    assert_eq!((scan.bad_lines, scan.duplicate_lines), (0, 0));
}

#[test]
fn lines_that_make_no_sense_are_counted_and_the_rest_is_kept() {
    let bad = [
        "up",
        "up one",
        "up{",
        "up{a} 1",
        "up{a=b} 1",
        "up{a=\"x} 1",
        "up{a=\"x\"b=\"y\"} 1",
        "up{a=\"x\"",
        "{} 1",
        "{a=\"x\"} 1",
        "up{\"other\"} 1",
        "up 1 2 3",
        "up 1 yesterday",
        "up {count:3,sum:1}",
    ];
    let text = format!("good 1\n{}\ngood_too 2\n", bad.join("\n"));
    let scan = scan(text.as_bytes(), |_| true);
    assert_eq!(scan.bad_lines, bad.len() as u64);
    assert_eq!(scan.series.len(), 2);
}

#[test]
fn a_repeated_series_counts_once_in_whatever_order_its_labels_stand() {
    let scan = scan(
        b"up{a=\"1\",b=\"2\"} 1\nup{b=\"2\",a=\"1\"} 7\nup{a=\"1\"} 3\n",
        |_| true,
    );
    let values: Vec<_> = scan.series.iter().map(|series| series.value).collect();
    assert_eq!((values, scan.duplicate_lines), (vec![1.0, 3.0], 1));
}

#[test]
fn metrics_that_nobody_wants_are_not_read_however_broken() {
    let scan = scan(b"other{ nonsense\nup 1\n", |name| name == "up");
    assert_eq!((scan.series.len(), scan.bad_lines), (1, 0));
}

/// A series as Prometheus' own client libraries write it.
fn written(name: &str, labels: &[(String, String)], value: f64) -> String {
    let escaped = |text: &str| {
        text.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n")
    };
    let labels: Vec<_> = labels
        .iter()
        .map(|(label, value)| format!("{label}=\"{}\"", escaped(value)))
        .collect();
    format!("{name}{{{}}} {value}", labels.join(","))
}

proptest! {
    /// Whatever a client library writes is read back as it was meant.
    #[test]
    fn what_is_written_is_read(
        name in "[a-zA-Z_:][a-zA-Z0-9_:]{0,20}",
        labels in proptest::collection::btree_map("[a-zA-Z_][a-zA-Z0-9_]{0,10}", "\\PC*|[\"\\\\\n,={}# ]*", 0..5),
        value in proptest::num::f64::NORMAL,
    ) {
        let labels: Vec<_> = labels.into_iter().collect();
        let text = written(&name, &labels, value);
        let scan = scan(text.as_bytes(), |_| true);
        prop_assert_eq!(scan.bad_lines, 0, "{}", text);
        prop_assert_eq!(&scan.series, &vec![Series { name, labels, value }]);
    }

    /// No bytes break the scanner, and a good line before and after them is still read.
    #[test]
    fn no_bytes_break_the_scanner(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let text = [b"first_line 1\n".as_slice(), &bytes, b"\nlast_line 2\n"].concat();
        let scan = scan(&text, |_| true);
        prop_assert!(scan.series.iter().any(|series| series.name == "first_line"));
        prop_assert!(scan.series.iter().any(|series| series.name == "last_line"));
    }

    /// Nor does text made of the format's own pieces in any order.
    #[test]
    fn no_order_of_the_formats_own_pieces_breaks_it(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just("{"), Just("}"), Just("\""), Just("="), Just(","), Just("\\"), Just(" "), Just("\n"), Just("#"),
                Just("name"), Just("1"), Just("NaN"), Just("le"), Just("\r"), Just("é"),
            ],
            0..60,
        ),
    ) {
        let text: String = pieces.concat();
        let lines = text.split('\n').count() as u64;
        let scan = scan(text.as_bytes(), |_| true);
        prop_assert!(scan.series.len() as u64 + scan.bad_lines + scan.duplicate_lines <= lines);
    }
}
