//! Toxiproxy's API as its clients see it: answers to the byte, and faults on real connections.

use super::stage::{LIMIT, PROGRAM, echo, round_trip, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A proxy with nothing but the API; ended with the test.
struct Api {
    child: Child,
    base: String,
    http: reqwest::Client,
    _state: TempDir,
}

impl Drop for Api {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A whole answer.
#[derive(Debug, PartialEq)]
struct Said {
    status: u16,
    content_type: String,
    body: String,
}

impl Api {
    async fn start(arguments: &[&str]) -> Api {
        let state = TempDir::new().unwrap();
        let mut child = Command::new(PROGRAM)
            .args(["proxy", "--api", "127.0.0.1:0"])
            .args(arguments)
            .env("XDG_STATE_HOME", state.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        let line = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            BufReader::new(output).read_line(&mut line).unwrap();
            line
        });
        let ready: Value = serde_json::from_str(&line.await.unwrap()).unwrap();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Api {
            child,
            base: ready["api"].as_str().unwrap().to_owned(),
            http,
            _state: state,
        }
    }

    async fn said(&self, method: &str, path: &str, body: &str) -> Said {
        let method = method.parse().unwrap();
        let request = self.http.request(method, format!("{}{path}", self.base));
        let answer = request
            .body(body.to_owned())
            .timeout(LIMIT)
            .send()
            .await
            .unwrap();
        let content_type = answer.headers().get("content-type");
        let content_type = content_type.map_or("", |value| value.to_str().unwrap());
        Said {
            status: answer.status().as_u16(),
            content_type: content_type.to_owned(),
            body: answer.text().await.unwrap(),
        }
    }

    /// The body of a request that succeeds.
    async fn ask(&self, method: &str, path: &str, body: Value) -> Value {
        let said = self.said(method, path, &body.to_string()).await;
        assert!(
            (200..300).contains(&said.status),
            "{method} {path}: {said:?}"
        );
        serde_json::from_str(&said.body).unwrap_or(Value::Null)
    }

    /// A proxy to `to`; gives its address.
    async fn proxy_to(&self, name: &str, to: SocketAddr) -> SocketAddr {
        let body = json!({ "name": name, "listen": "127.0.0.1:0", "upstream": to.to_string() });
        let made = self.ask("POST", "/proxies", body).await;
        made["listen"].as_str().unwrap().parse().unwrap()
    }

    async fn toxic(&self, proxy: &str, toxic: Value) {
        let path = format!("/proxies/{proxy}/toxics");
        self.ask("POST", &path, toxic).await;
    }
}

fn failed(status: u16, error: &str) -> Said {
    Said {
        status,
        content_type: "text/plain; charset=utf-8".to_owned(),
        body: format!("{{\"error\":\"{error}\",\"status\":{status}}}\n"),
    }
}

/// What is asked, the body, and what comes back. The proxy `a` is there, `b` is not.
const WRONG: &[(&str, &str, u16, &str)] = &[
    (
        "POST /proxies",
        r#"x"#,
        400,
        "bad request body: invalid character 'x' looking for beginning of value",
    ),
    ("POST /proxies", r#""#, 400, "bad request body: EOF"),
    (
        "POST /proxies",
        r#"{"#,
        400,
        "bad request body: unexpected EOF",
    ),
    (
        "POST /proxies",
        r#"{"name":1}"#,
        400,
        "bad request body: json: cannot unmarshal number into Go struct field Proxy.name of type string",
    ),
    (
        "POST /proxies",
        r#"{}"#,
        400,
        "missing required field: name",
    ),
    (
        "POST /proxies",
        r#"{"name":"b"}"#,
        400,
        "missing required field: upstream",
    ),
    (
        "POST /proxies",
        r#"{"name":"a","upstream":"x:1"}"#,
        409,
        "proxy already exists",
    ),
    (
        "POST /proxies",
        r#"{"name":"b","upstream":"x:1","listen":"bad"}"#,
        500,
        "listen tcp: address bad: missing port in address",
    ),
    ("GET /proxies/b", r#""#, 404, "proxy not found"),
    ("DELETE /proxies/b", r#""#, 404, "proxy not found"),
    (
        "POST /proxies/b/toxics",
        r#"{"type":"latency"}"#,
        404,
        "proxy not found",
    ),
    (
        "POST /proxies/a/toxics",
        r#"{"type":"odd"}"#,
        400,
        "invalid toxic type",
    ),
    (
        "POST /proxies/a/toxics",
        r#"{"type":"odd","stream":"up"}"#,
        400,
        "stream was invalid, can be either upstream or downstream",
    ),
    (
        "POST /proxies/a/toxics",
        r#"{"type":"latency","attributes":{"latency":"x"}}"#,
        400,
        "bad request body: json: cannot unmarshal string into Go struct field LatencyToxic.latency of type int64",
    ),
    ("GET /proxies/a/toxics/t", r#""#, 404, "toxic not found"),
    ("PATCH /proxies/a/toxics/t", r#"{}"#, 404, "toxic not found"),
    ("DELETE /proxies/a/toxics/t", r#""#, 404, "toxic not found"),
];

#[tokio::test(flavor = "multi_thread")]
async fn says_what_is_wrong_in_toxiproxy_s_words() {
    let api = Api::start(&[]).await;
    api.proxy_to("a", echo().await).await;
    for (asked, sent, status, error) in WRONG {
        let (method, path) = asked.split_once(' ').unwrap();
        let said = api.said(method, path, sent).await;
        assert_eq!(said, failed(*status, error), "{asked} {sent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn says_what_is_taken_already() {
    let api = Api::start(&[]).await;
    api.proxy_to("a", echo().await).await;
    api.toxic("a", json!({ "type": "latency", "name": "t" }))
        .await;
    let again = r#"{"type":"timeout","name":"t","stream":"upstream"}"#;
    let conflict = api.said("POST", "/proxies/a/toxics", again).await;
    assert_eq!(conflict, failed(409, "toxic already exists"));
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    let sent = json!({ "name": "b", "upstream": "x:1", "listen": format!("localhost:{}", address.port()) });
    let said = api.said("POST", "/proxies", &sent.to_string()).await;
    let error = format!("listen tcp {address}: bind: address already in use");
    assert_eq!(said, failed(500, &error));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_to_the_byte() {
    let api = Api::start(&[]).await;
    let said = api.said("GET", "/version", "").await;
    assert_eq!(said.body, "{\"version\": \"git\"}\n");
    assert_eq!(said.content_type, "application/json;charset=utf-8");
    let address = api.proxy_to("a", "127.0.0.1:9".parse().unwrap()).await;
    let shown = format!(
        "{{\"name\":\"a\",\"listen\":\"{address}\",\"upstream\":\"127.0.0.1:9\",\"enabled\":true,\"Logger\":{{}},\"toxics\":[]}}"
    );
    let said = api.said("GET", "/proxies/a", "").await;
    assert_eq!(
        (said.body.as_str(), said.content_type.as_str()),
        (&*shown, "application/json")
    );
    assert_eq!(
        api.said("GET", "/proxies", "").await.body,
        format!("{{\"a\":{shown}}}")
    );
    for (sent, answered) in [
        (
            json!({ "type": "latency" }),
            r#"{"attributes":{"latency":0,"jitter":0},"name":"latency_downstream","type":"latency","stream":"downstream","toxicity":1}"#,
        ),
        (
            json!({ "type": "slicer", "stream": "UPSTREAM", "toxicity": 0.25, "attributes": { "delay": 7, "odd": 1 } }),
            r#"{"attributes":{"average_size":0,"size_variation":0,"delay":7},"name":"slicer_UPSTREAM","type":"slicer","stream":"UPSTREAM","toxicity":0.25}"#,
        ),
    ] {
        let said = api
            .said("POST", "/proxies/a/toxics", &sent.to_string())
            .await;
        assert_eq!((said.status, said.body.as_str()), (200, answered));
    }
    let listed = api.ask("GET", "/proxies/a/toxics", Value::Null).await;
    let names: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|toxic| toxic["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["slicer_UPSTREAM", "latency_downstream"],
        "those towards the target first"
    );
    // What an update does not name stays.
    let updated = json!({ "attributes": { "jitter": 3 }, "toxicity": 0.5, "name": "x", "stream": "upstream" });
    let updated = api
        .ask("PATCH", "/proxies/a/toxics/latency_downstream", updated)
        .await;
    assert_eq!(updated["attributes"], json!({ "latency": 0, "jitter": 3 }));
    assert_eq!(
        (&updated["name"], &updated["toxicity"]),
        (&json!("latency_downstream"), &json!(0.5))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn other_paths_methods_and_lists_are_answered_as_there() {
    let api = Api::start(&[]).await;
    api.proxy_to("a", "127.0.0.1:9".parse().unwrap()).await;
    for (method, path, status, body) in [
        ("PUT", "/proxies/a", 405, ""),
        ("HEAD", "/version", 405, ""),
        ("GET", "/proxies/", 404, "404 page not found\n"),
        ("GET", "/metrics", 404, "404 page not found\n"),
        ("DELETE", "/proxies/a", 204, ""),
    ] {
        let said = api.said(method, path, "").await;
        assert_eq!(
            (said.status, said.body.as_str()),
            (status, body),
            "{method} {path}"
        );
    }
    for (sent, status, body) in [
        ("[]", 201, r#"{"proxies":null}"#),
        (
            r#"[{"name":"b","upstream":"x:1","listen":"127.0.0.1:0"},{"upstream":"x:1"}]"#,
            400,
            r#"{"error":"missing required field: name at proxy 2","status":400,"proxies":null}"#,
        ),
    ] {
        let said = api.said("POST", "/populate", sent).await;
        assert_eq!(
            (said.status, said.body.as_str(), said.content_type.as_str()),
            (status, body, "application/json")
        );
    }
    assert_eq!(
        api.said("GET", "/proxies", "").await.body,
        "{}",
        "nothing is made of a list with a mistake"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_and_requests_without_the_token_are_turned_away() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("token");
    std::fs::write(&file, "open sesame\n").unwrap();
    let api = Api::start(&["--api-token-file", file.to_str().unwrap()]).await;
    let get = || api.http.get(format!("{}/version", api.base));
    let browser = get()
        .header("user-agent", "Mozilla/5.0 (X11)")
        .send()
        .await
        .unwrap();
    assert!(browser.headers().contains_key("x-toxiproxy-request-id"));
    assert_eq!(browser.status(), 403);
    assert_eq!(browser.text().await.unwrap(), "User agent not allowed\n");
    assert_eq!(get().send().await.unwrap().status(), 401);
    assert_eq!(
        get()
            .bearer_auth("open sesame")
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
    let open = Command::new(PROGRAM)
        .args(["proxy", "--api", "0.0.0.0:0"])
        .output()
        .unwrap();
    let said = String::from_utf8(open.stderr).unwrap();
    assert_eq!(open.status.code(), Some(2), "{said}");
    assert!(said.contains("--api-token-file"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_keeps_its_port_while_it_is_off_and_refuses_meanwhile() {
    let api = Api::start(&["--proxy-metrics"]).await;
    let address = api.proxy_to("a", echo().await).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    round_trip(&mut stream).await;
    let metrics = api.said("GET", "/metrics", "").await.body;
    // Counted while the connection lives.
    let line = format!(
        "toxiproxy_proxy_received_bytes_total{{direction=\"upstream\",listener=\"{address}\",proxy=\"a\""
    );
    let counted = metrics
        .lines()
        .find(|found| found.starts_with(&line))
        .unwrap();
    assert!(counted.ends_with(" 1"), "{counted}");
    api.ask("PATCH", "/proxies/a", json!({ "enabled": false }))
        .await;
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0, "FIN");
    let refused = TcpStream::connect(address).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    api.toxic(
        "a",
        json!({ "type": "latency", "attributes": { "latency": 60_000 } }),
    )
    .await;
    // Everything is on and free of toxics again.
    api.ask("POST", "/reset", Value::Null).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    assert!(round_trip(&mut stream).await < Duration::from_secs(30));
    // The same address by its name is no change: the connection lives on.
    let same = json!({ "listen": format!("localhost:{}", address.port()) });
    api.ask("POST", "/proxies/a", same).await;
    round_trip(&mut stream).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_comes_to_idle_connections_as_a_reset() {
    let api = Api::start(&[]).await;
    let address = api.proxy_to("a", echo().await).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    round_trip(&mut stream).await;
    api.toxic(
        "a",
        json!({ "type": "reset_peer", "attributes": { "timeout": 10 } }),
    )
    .await;
    let seen = tokio::time::timeout(LIMIT, stream.read(&mut [0]))
        .await
        .unwrap();
    assert_eq!(seen.expect_err("no FIN").kind(), ErrorKind::ConnectionReset);
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_never_read_block_no_toxic_of_any_kind() {
    const PEERS: usize = 200;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let api = Api::start(&[]).await;
    let address = api.proxy_to("a", listener.local_addr().unwrap()).await;
    let mut blocked = Vec::new();
    for _ in 0..PEERS {
        let client = TcpStream::connect(address).await.unwrap();
        let (target, _) = listener.accept().await.unwrap();
        blocked.extend([client, target]);
    }
    let mut filling = tokio::task::JoinSet::new();
    for mut stream in blocked {
        filling.spawn(async move {
            let full = async { while stream.write_all(&[7; 65_536]).await.is_ok() {} };
            // Until neither the proxy nor the kernel takes any more.
            let _ = tokio::time::timeout(Duration::from_secs(1), full).await;
            stream
        });
    }
    let blocked = filling.join_all().await;
    let begun = Instant::now();
    let mut asked = 0;
    for (kind, attributes) in [
        ("latency", json!({ "latency": 1_000 })),
        ("bandwidth", json!({ "rate": 1 })),
        ("slow_close", json!({ "delay": 1_000 })),
        ("slicer", json!({ "average_size": 10 })),
        ("limit_data", json!({ "bytes": 1_000_000_000 })),
        ("noop", json!({})),
    ] {
        for stream in ["upstream", "downstream"] {
            let toxic = json!({ "type": kind, "stream": stream, "attributes": attributes });
            let one = format!("/proxies/a/toxics/{kind}_{stream}");
            api.toxic("a", toxic).await;
            api.ask("POST", &one, json!({ "toxicity": 0.5 })).await;
            api.ask("GET", "/proxies", Value::Null).await;
            api.ask("DELETE", &one, Value::Null).await;
            api.ask("POST", "/reset", Value::Null).await;
            asked += 5;
        }
    }
    // None waits for a peer: each is bounded by 100 ms, on average, however busy the machine is.
    assert!(
        begun.elapsed() < Duration::from_millis(100) * asked,
        "{:?}",
        begun.elapsed()
    );
    drop(blocked);
    api.ask("DELETE", "/proxies/a", Value::Null).await;
    until("nobody listens any more", || async {
        TcpStream::connect(address).await.is_err()
    })
    .await;
}
