//! Prometheus itself: its checks of rules and expressions, and a server that reads a real run.

use super::dashboards::{all, expressions, filled_in, folder};
use crate::support::lab_target_with;
use crate::support::program::{Home, Running, eventually};
use crate::support::service::{free_port, listens, program};
use rushhour::probe::prometheus::scan;
use serde_json::Value;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn accepted(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_alerts_fire_when_they_should_and_not_otherwise() {
    let Some(promtool) = program("promtool") else {
        return;
    };
    let rules = folder().join("rules.yaml");
    accepted(Command::new(&promtool).args(["check", "rules"]).arg(rules));
    let tests = folder().join("rules.test.yaml");
    accepted(Command::new(&promtool).args(["test", "rules"]).arg(tests));
}

#[test]
fn every_panel_and_annotation_is_promql() {
    let Some(promtool) = program("promtool") else {
        return;
    };
    let mut rules = String::from("groups:\n  - name: panels\n    rules:\n");
    let mut count = 0;
    for (_, board) in all() {
        let marks = board["annotations"]["list"].as_array().unwrap();
        let marks = marks.iter().map(|mark| mark["expr"].as_str().unwrap());
        let panels = expressions(&board).into_iter().map(|(_, text)| text);
        for expression in panels.chain(marks.map(str::to_owned)) {
            let text = serde_json::to_string(&filled_in(&expression)).unwrap();
            let _ = writeln!(
                rules,
                "      - {{ record: \"panel:{count}\", expr: {text} }}"
            );
            count += 1;
        }
    }
    let home = Home::new();
    let path = home.write("panels.yaml", &rules);
    accepted(Command::new(promtool).args(["check", "rules"]).arg(path));
}

/// A Prometheus that reads one address every second; killed when dropped.
struct Prometheus {
    port: u16,
    server: Child,
}

impl Prometheus {
    fn start(program: &Path, home: &Home, address: &str) -> Prometheus {
        let configuration = home.write(
            "prometheus.yml",
            &format!(
                "global: {{ scrape_interval: 1s, scrape_timeout: 1s }}\nscrape_configs:\n  - job_name: rushhour\n    \
                 static_configs: [ {{ targets: [ \"{address}\" ] }} ]\n"
            ),
        );
        let port = free_port();
        let server = Command::new(program)
            .arg(format!("--config.file={}", configuration.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                home.path().join("tsdb").display()
            ))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let prometheus = Prometheus { port, server };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        assert!(listens(address, Duration::from_secs(20)), "no Prometheus");
        prometheus
    }

    /// How many series an expression gives now.
    fn count(
        &self,
        http: &reqwest::Client,
        expression: &str,
    ) -> impl Future<Output = usize> + use<> {
        let mut url =
            reqwest::Url::parse(&format!("http://127.0.0.1:{}/api/v1/query", self.port)).unwrap();
        url.query_pairs_mut().append_pair("query", expression);
        let asked = http.get(url).send();
        async move {
            let Ok(answer) = asked.await else { return 0 };
            let body = answer.text().await.unwrap_or_default();
            let document: Value = serde_json::from_str(&body).unwrap_or_default();
            document["data"]["result"].as_array().map_or(0, Vec::len)
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

const PROFILE: &str = "duration: 26s
baseline: 10s
sustain: 2500ms
settle: 5s
drain: 1s
hubs:
  homes:
    device: hub
    count: 20
    connect: { over: 500ms }
    keep_alive: 30s
    timeout: 1s
    telemetry: { every: 2s, bytes: 50 }
    reconnect: { full_jitter: { base: 100ms, cap: 500ms }, first: 200ms, healthy_after: 2s }
riders:
  commuters: { journey: unlock-and-ride, arrivals: { even: [ 10/s for 26s ] }, timeout: 1s, max_in_flight: 400 }
issuers:
  app: { command: switch, to: homes, arrivals: { even: [ 10/s for 26s ] }, in_time: 1s, ttl: 5s, timeout: 1s }
timeline:
  drop: { at: 10s, disconnect: { hubs: homes, share: 50%, within: 500ms, by: reset } }
expect: [ hubs connected >= 10% ]
";

/// Beside the shipped probes, one of a broker.
const BROKER: &str = "    shards: { plays: broker, scrape: <lab.metrics>/metrics, signals: { connections: { gauge: lab_sessions }, \
                      connects: { counter: lab_connects_total } } }\n";

/// Starts a run that exports, and says where.
fn exporting(home: &Home) -> (Running, String) {
    let target = lab_target_with(home, BROKER);
    let profile = home.write(
        "profile.yaml",
        &format!("about: For Prometheus.\ntarget: {target}\nseed: 7\n{PROFILE}"),
    );
    let profile = profile.display().to_string();
    let running = home.start(&["run", &profile, "--metrics", "127.0.0.1:0"], &[]);
    let address = eventually("the exporter's address", Duration::from_secs(60), || {
        let stderr = running.stderr();
        let rest = stderr.split("metrics: http://").nth(1)?;
        Some(rest.split("/metrics\n").next()?.to_owned())
    });
    (running, address)
}

/// Each panel gets data of a run while it goes on, and the page says what the run is known to be.
#[test]
fn a_real_prometheus_has_data_of_a_real_run_for_every_panel() {
    let Some(server) = program("prometheus") else {
        return;
    };
    let home = Home::new();
    let (running, address) = exporting(&home);
    let prometheus = Prometheus::start(&server, &home, &address);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let http = reqwest::Client::new();
        let mut open: Vec<(String, String)> = all()
            .iter()
            .flat_map(|(name, board)| {
                let expressions = expressions(board).into_iter();
                expressions.map(move |(title, text)| (format!("{name}: {title}"), filled_in(&text)))
            })
            .collect();
        let begun = Instant::now();
        while !open.is_empty() {
            let mut left = Vec::new();
            for (title, expression) in open {
                if prometheus.count(&http, &expression).await == 0 {
                    left.push((title, expression));
                }
            }
            open = left;
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "no data: {open:#?}\n{}",
                running.stderr()
            );
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let page = http.get(format!("http://{address}/metrics")).send().await;
        let page = page.unwrap().text().await.unwrap();
        values(&page);
    });
}

/// What is known of this run, whatever the machine does.
fn values(page: &str) {
    let read = scan(page.as_bytes(), |_| true);
    assert_eq!((read.bad_lines, read.duplicate_lines), (0, 0));
    let of = |name: &str, label: (&str, &str)| {
        let series = read.series.iter();
        let fitting = series.filter(|one| one.name == name && one.label(label.0) == Some(label.1));
        fitting.map(|one| one.value).sum::<f64>()
    };
    let homes = ("group", "homes");
    assert_eq!(of("rushhour_hubs", homes), 20.0);
    assert_eq!(of("rushhour_hubs_connected", homes), 20.0);
    // Half of them came back after the drop, each by one attempt or more.
    let (connects, reconnects) = (
        of("rushhour_hub_connects_total", homes),
        of("rushhour_hub_reconnects_total", homes),
    );
    assert!(
        reconnects >= 10.0 && connects == reconnects + 20.0,
        "{connects} {reconnects}"
    );
    // The broker counts the same connects from its side, all of them ours, since its first reading.
    assert!(of("rushhour_probe_connects_total", ("source", "shards")) <= connects);
    assert_eq!(of("rushhour_probe_connections", ("source", "shards")), 20.0);
    assert_eq!(of("rushhour_recovered", ("mark", "drop")), 1.0);
    let (due, states) = (
        of("rushhour_commands_due_total", ("group", "app")),
        of("rushhour_commands", ("group", "app")),
    );
    assert!(
        due == states && due >= 100.0,
        "{states} of {due} have a state"
    );
}
