//! The dashboards as files: what Grafana and its readers need of each.

use rushhour::plan::metric::family;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("dashboards")
}

/// Every dashboard with its name.
pub fn all() -> Vec<(String, Value)> {
    let mut found: Vec<(String, Value)> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            (name, serde_json::from_str(&text).unwrap())
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// Title and expression of every target of every panel.
pub fn expressions(board: &Value) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for panel in board["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        for target in panel["targets"].as_array().unwrap() {
            all.push((
                title.to_owned(),
                target["expr"].as_str().unwrap().to_owned(),
            ));
        }
    }
    all
}

/// The expression as Prometheus gets it.
pub fn filled_in(expression: &str) -> String {
    let text = expression
        .replace("$__rate_interval", "15s")
        .replace("$job", ".+")
        .replace("$instance", ".+");
    assert!(!text.contains('$'), "an unknown variable in {expression}");
    text
}

#[test]
fn the_four_dashboards_are_there() {
    let names: Vec<String> = all().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["fleet", "generator", "recovery", "target-pool"]);
}

#[test]
fn every_dashboard_keeps_the_rules_of_its_readers() {
    for (name, board) in all() {
        assert_eq!(board["uid"], format!("rushhour-{name}"));
        assert_eq!(board["schemaVersion"], 42);
        assert_eq!(board["editable"], false);
        assert!(board["id"].is_null() && board["title"].is_string());
        let variables = board["templating"]["list"].as_array().unwrap();
        let named: Vec<&str> = variables
            .iter()
            .map(|variable| variable["name"].as_str().unwrap())
            .collect();
        assert_eq!(named, ["datasource", "job", "instance"], "{name}");
        let marks = board["annotations"]["list"].to_string();
        assert!(
            marks.contains("rushhour_fault_active") && marks.contains("rushhour_trigger_active")
        );
        panels(&name, &board);
        for (title, expression) in expressions(&board) {
            metrics(&format!("{name}: {title}"), &expression);
        }
    }
}

fn panels(name: &str, board: &Value) {
    let mut ids = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for panel in board["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{name}: {title}");
        assert!(panel["description"].as_str().unwrap().len() > 10, "{title}");
        let unit = panel["fieldConfig"]["defaults"]["unit"].as_str();
        assert!(unit.is_some_and(|unit| !unit.is_empty()), "{title}");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        let at = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24, "{title}");
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(
                    taken.insert((x, y)),
                    "{name}: {title} lies over another panel"
                );
            }
        }
    }
}

/// Names of the catalogue only; counters always as a rate, or against the whole run.
fn metrics(place: &str, expression: &str) {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut found = 0;
    for (at, _) in expression.match_indices("rushhour_") {
        let name: String = expression[at..]
            .chars()
            .take_while(|c| is_name(*c))
            .collect();
        let base = name.strip_suffix("_bucket").unwrap_or(&name);
        assert!(family(base).is_some(), "{place}: nothing exports {name}");
        if name.ends_with("_total") {
            let before = &expression[..at];
            let is_rate = before.ends_with("rate(") || before.ends_with("increase(");
            let is_mean = expression[at..].contains("rushhour_run_time_seconds");
            assert!(is_rate || is_mean, "{place}: {name} without a rate");
        }
        found += 1;
    }
    assert!(found > 0, "{place}");
    assert!(
        !expression.contains("[1m]") && !expression.contains("[5m]"),
        "{place}"
    );
}
