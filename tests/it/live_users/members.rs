//! Riders with accounts: whole runs against a desk of our own that counts who logs in, and against the lab.

use crate::support::program::Home;
use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(90);

/// What the target knows.
#[derive(Default)]
struct Desk {
    /// Logins by account.
    logins: BTreeMap<String, u32>,
    /// Rides by account.
    rides: BTreeMap<String, u32>,
    refused: u32,
    /// Nobody's password is right.
    closed: bool,
}

type Shared = Arc<Mutex<Desk>>;

/// `/login` gives `ACCOUNT.N` for two seconds, where N counts the account's logins; `/ride` wants the newest one or that before it.
async fn serve(desk: &Shared) -> SocketAddr {
    let (issuing, serving) = (Arc::clone(desk), Arc::clone(desk));
    let login = post(move |body: String| async move {
        let mut desk = issuing.lock().unwrap();
        let body: Value = serde_json::from_str(&body).unwrap();
        let email = body["email"].as_str().unwrap().to_owned();
        let number = desk.logins.entry(email.clone()).or_default();
        *number += 1;
        let number = *number;
        if desk.closed || body["password"] != json!(format!("secret-of-{email}")) {
            return (StatusCode::UNAUTHORIZED, String::new());
        }
        let token = json!({ "access_token": format!("{email}.{number}"), "expires_in": 2.0 });
        (StatusCode::OK, token.to_string())
    });
    let ride = get(move |headers: HeaderMap| async move {
        let mut desk = serving.lock().unwrap();
        let bearer = headers["authorization"].to_str().unwrap().to_owned();
        let known = bearer
            .strip_prefix("Bearer ")
            .and_then(|token| token.split_once('.'))
            .and_then(|(email, number)| Some((email.to_owned(), number.parse::<u32>().ok()?)))
            .filter(|(email, number)| *number + 1 >= desk.logins[email]);
        let Some((email, _)) = known else {
            desk.refused += 1;
            return StatusCode::UNAUTHORIZED;
        };
        *desk.rides.entry(email).or_default() += 1;
        StatusCode::OK
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/login", login).route("/ride", ride);
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Riders at 20/s on four accounts for four seconds.
async fn ride(desk: &Shared) -> (i32, Value, String) {
    let address = serve(desk).await;
    let home = Home::new();
    home.write(
        "target.yaml",
        &format!(
            r#"environment: test
identities: {{ people: {{ numbered: {{ count: 4, columns: {{ email: "p<n>", password: "secret-of-p<n>" }} }} }} }}
tokens: {{ app: {{ post: "http://{address}/login", json: {{ email: <email>, password: <password> }}, keep: $.access_token, lasts: $.expires_in, renew: 1s before expiry, per: account, identity: people }} }}
journeys: {{ ride: {{ identity: people, base: "http://{address}", steps: {{ go: {{ get: /ride, bearer: <token.app> }} }} }} }}
"#
        ),
    );
    let profile = "target: target.yaml
duration: 4s
drain: 5s
riders: { members: { journey: ride, arrivals: { even: [ 20/s for 4s ] }, timeout: 4s } }
expect: [ go success == 100% ]
";
    let profile = home.write("profile.yaml", profile).display().to_string();
    tokio::task::spawn_blocking(move || {
        let finished = home.finish(&["run", &profile], LIMIT);
        (finished.code, finished.result(), finished.stdout)
    })
    .await
    .unwrap()
}

fn operation<'a>(result: &'a Value, name: &str) -> &'a Value {
    let operations = result["operations"].as_array().unwrap();
    let row = operations.iter().find(|row| row["name"] == name);
    row.unwrap_or_else(|| panic!("{operations:?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_account_has_a_token_of_its_own_that_is_renewed_in_time() {
    let desk = Shared::default();
    let (_, result, stdout) = ride(&desk).await;
    let desk = desk.lock().unwrap();
    assert_eq!(desk.rides.len(), 4, "{:?}", desk.rides);
    assert_eq!(desk.refused, 0, "nobody rode with a token that had ended");
    let rides: u32 = desk.rides.values().sum();
    let logins: u32 = desk.logins.values().sum();
    for count in desk.logins.values() {
        // Once at first, then about every second: not once a ride, of which each account had twenty.
        assert!((2..=7).contains(count), "{:?}", desk.logins);
    }
    assert_eq!(operation(&result, "go")["attempts"], rides, "{stdout}");
    assert_eq!(operation(&result, "app")["attempts"], logins, "{stdout}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accounts_that_can_not_log_in_are_asked_a_few_times_and_nothing_is_sent_for_them() {
    let desk = Shared::default();
    desk.lock().unwrap().closed = true;
    let (code, result, stdout) = ride(&desk).await;
    assert_eq!(code, 4, "no load was offered: {stdout}");
    let desk = desk.lock().unwrap();
    let logins: u32 = desk.logins.values().sum();
    // At 0 s, a second later, two seconds after that, and so on: for each of four accounts.
    assert!((4..=16).contains(&logins), "{:?}", desk.logins);
    assert_eq!((desk.rides.len(), desk.refused), (0, 0));
    assert_eq!(operation(&result, "app")["failed"], logins, "{stdout}");
}

#[test]
fn the_lab_lets_in_who_knows_the_password_and_refuses_the_others_with_401() {
    let lab = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("profiles/targets/lab.yaml");
    let run = |password: &str, expect: &str| {
        let home = Home::new();
        let text = std::fs::read_to_string(&lab).unwrap();
        home.write("target.yaml", &text.replace("\"pass-<n>\"", password));
        let profile = format!(
            "target: target.yaml
duration: 2s
drain: 10s
riders: {{ members: {{ journey: member-ride, arrivals: {{ even: [ 5/s for 2s ] }} }} }}
expect: [ {expect} ]
"
        );
        let profile = home.write("profile.yaml", &profile).display().to_string();
        let finished = home.finish(&["run", &profile], LIMIT);
        (finished.code, finished.result(), finished.stdout)
    };
    let (code, result, stdout) = run("\"pass-<n>\"", "member-ride success == 100%");
    assert_eq!(code, 0, "{stdout}");
    assert_eq!(
        operation(&result, "return")["ok"],
        operation(&result, "login")["ok"]
    );
    let (code, result, stdout) = run("\"guessed-<n>\"", "login success == 0%");
    assert_eq!(code, 4, "nothing completed: {stdout}");
    let outcomes = operation(&result, "login")["outcomes"].to_string();
    assert!(outcomes.contains("refused 401"), "{outcomes}");
    assert_eq!(operation(&result, "near")["started"], 0, "{stdout}");
}
