//! Tokens over real sockets: had once, renewed in time, and once for a crowd of refusals.

use super::stage::{Told, plan, request, step, template};
use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use rushhour::event::{Event, Outcome, Sink};
use rushhour::live::docks::Inboxes;
use rushhour::live::tokens::Tokens;
use rushhour::live::users::UserFleet;
use rushhour::net::clock::Clock;
use rushhour::net::hosts::Hosts;
use rushhour::plan::json_path::JsonPath;
use rushhour::plan::target::Method;
use rushhour::plan::token::{Lasts, Per, TokenSpec};
use rushhour::plan::{OperationKind, Plan, operation};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

/// What the target knows: which token counts, and what it was asked.
#[derive(Default)]
struct Desk {
    /// The number of the newest token; `token-N` is the only one that counts.
    issued: u32,
    forms: Vec<BTreeMap<String, String>>,
    accepted: u32,
    refused: u32,
    expires_in_s: f64,
    /// From then on nobody gets a new one.
    closed: bool,
}

type Shared = Arc<Mutex<Desk>>;

async fn serve(desk: Shared) -> SocketAddr {
    let issuing = Arc::clone(&desk);
    let issue = post(move |body: String| async move {
        let mut desk = issuing.lock().unwrap();
        let form = url::form_urlencoded::parse(body.as_bytes());
        desk.forms.push(form.into_owned().collect());
        if desk.closed {
            return (
                StatusCode::BAD_REQUEST,
                r#"{"error":"invalid_client"}"#.to_owned(),
            );
        }
        desk.issued += 1;
        let body = format!(
            r#"{{"access_token":"token-{}","expires_in":{}}}"#,
            desk.issued, desk.expires_in_s
        );
        (StatusCode::OK, body)
    });
    let serving = get(move |headers: HeaderMap| async move {
        let mut desk = desk.lock().unwrap();
        let wanted = format!("Bearer token-{}", desk.issued);
        let given = headers
            .get("authorization")
            .and_then(|value| value.to_str().ok());
        if given == Some(&wanted) {
            desk.accepted += 1;
            StatusCode::OK
        } else {
            desk.refused += 1;
            StatusCode::UNAUTHORIZED
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/token", issue).route("/", serving);
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Riders that carry `<token.api>`.
fn carrying(address: SocketAddr, per_second: f64, lasts: Duration, renew_before: Duration) -> Plan {
    let mut near = request(Method::Get, &format!("http://{address}/"));
    near.bearer = Some(template("<token.api>"));
    let mut plan = plan(vec![step("near", near)], per_second, lasts);
    let path = |text: &str| JsonPath::parse(text).unwrap();
    plan.target.tokens.push(TokenSpec {
        name: "api".to_owned(),
        request: request(Method::Post, &format!("http://{address}/token")),
        form: vec![
            ("grant_type".to_owned(), template("client_credentials")),
            ("client_secret".to_owned(), template("a secret & more")),
        ],
        keep: path("$.access_token"),
        lasts: Lasts::Stated(path("$.expires_in")),
        renew_before,
        per: Per::Run,
    });
    plan.operations = operation::table(&[], &plan.riders, &[], &plan.target);
    plan.drain = Duration::from_secs(5);
    plan
}

async fn start(plan: &Arc<Plan>, told: &Told, clock: Clock) -> Result<(Tokens, UserFleet), String> {
    let hosts = Arc::new(Hosts::of(&plan.target).unwrap());
    let sink: Sink = told.sink();
    let tokens = Tokens::start(plan, &hosts, clock, &sink).await;
    let tokens = tokens.map_err(|error| error.to_string())?;
    let fleet = UserFleet::start(
        plan,
        &hosts,
        clock,
        "run",
        &[sink],
        &Inboxes::default(),
        &tokens,
    )
    .await;
    Ok((tokens, fleet.map_err(|error| error.to_string())?))
}

fn token_row(plan: &Plan) -> u16 {
    plan.operation(OperationKind::Token { token: 0 }).unwrap().0
}

async fn run(plan: Plan, told: &Told, meanwhile: impl Future<Output = ()>) {
    let plan = Arc::new(plan);
    let clock = Clock::start();
    let (_tokens, fleet) = start(&plan, told, clock).await.unwrap();
    let zero = clock.now();
    fleet.begin(zero);
    meanwhile.await;
    tokio::time::sleep_until(clock.instant(zero.after(plan.duration))).await;
    fleet.stop(clock.now().after(plan.drain)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_had_once_and_carried_by_everybody() {
    let desk = Shared::default();
    desk.lock().unwrap().expires_in_s = 3600.0;
    let address = serve(Arc::clone(&desk)).await;
    let told = Told::default();
    let plan = carrying(
        address,
        100.0,
        Duration::from_secs(1),
        Duration::from_secs(30),
    );
    let row = token_row(&plan);
    run(plan, &told, async {}).await;
    let desk = desk.lock().unwrap();
    assert_eq!((desk.issued, desk.accepted, desk.refused), (1, 100, 0));
    assert_eq!(desk.forms[0]["client_secret"], "a secret & more");
    assert_eq!(
        told.finished(row, Outcome::Ok),
        1,
        "an operation with its latency"
    );
}

/// Tokens of 2 s that are renewed 1 s before their end, for 5 s: nobody is ever refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_renewed_before_it_ends() {
    let desk = Shared::default();
    desk.lock().unwrap().expires_in_s = 3.0;
    let address = serve(Arc::clone(&desk)).await;
    let told = Told::default();
    let plan = carrying(
        address,
        20.0,
        Duration::from_secs(5),
        Duration::from_secs(2),
    );
    run(plan, &told, async {}).await;
    let desk = desk.lock().unwrap();
    // At 0, and then about every second.
    assert!((3..=8).contains(&desk.issued), "{} tokens", desk.issued);
    // A request on its way while the token changes may carry the one before.
    assert!(desk.refused <= desk.issued, "{} refused", desk.refused);
}

/// The target forgets the token in mid-run: hundreds are refused, one renewal follows, and everybody after it is served.
#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_refusals_leads_to_one_renewal() {
    let desk = Shared::default();
    desk.lock().unwrap().expires_in_s = 3600.0;
    let address = serve(Arc::clone(&desk)).await;
    let told = Told::default();
    let plan = carrying(
        address,
        400.0,
        Duration::from_secs(3),
        Duration::from_secs(30),
    );
    let forgets = Arc::clone(&desk);
    run(plan, &told, async move {
        let limit = Instant::now() + Duration::from_secs(20);
        while forgets.lock().unwrap().accepted < 100 {
            assert!(Instant::now() < limit, "nobody was served");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // The newest number counts, and nobody has it.
        forgets.lock().unwrap().issued += 1;
    })
    .await;
    let desk = desk.lock().unwrap();
    assert!(desk.refused >= 1, "the token was forgotten");
    assert_eq!(
        desk.forms.len(),
        2,
        "one at first, one renewal for {} refusals",
        desk.refused
    );
    assert_eq!(desk.accepted + desk.refused, 1_200);
}

/// Nobody gets a new one any more: the run goes on refused, and the token is asked for a few times, not once for each refusal.
#[tokio::test(flavor = "multi_thread")]
async fn a_closed_desk_is_not_stormed() {
    let desk = Shared::default();
    desk.lock().unwrap().expires_in_s = 3600.0;
    let address = serve(Arc::clone(&desk)).await;
    let told = Told::default();
    let plan = carrying(
        address,
        200.0,
        Duration::from_secs(4),
        Duration::from_secs(30),
    );
    let row = token_row(&plan);
    let closes = Arc::clone(&desk);
    run(plan, &told, async move {
        let mut desk = closes.lock().unwrap();
        desk.issued += 1;
        desk.closed = true;
    })
    .await;
    let desk = desk.lock().unwrap();
    assert!(desk.refused >= 400, "{} refused", desk.refused);
    // Waits of 1 to 2 s, then 2 to 4 s: at most four tries in these few seconds, after the first one.
    assert!(
        (2..=6).contains(&desk.forms.len()),
        "asked {} times",
        desk.forms.len()
    );
    assert_eq!(
        told.finished(row, Outcome::Refused(400)),
        desk.forms.len() - 1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_can_not_be_had_is_named_and_nobody_begins() {
    let desk = Shared::default();
    desk.lock().unwrap().closed = true;
    let address = serve(desk).await;
    let plan = carrying(address, 1.0, Duration::from_secs(1), Duration::ZERO);
    let told = Told::default();
    let started = start(&Arc::new(plan), &told, Clock::start()).await;
    let said = started.err().expect("it can't start");
    assert_eq!(
        said,
        format!(
            "error: token `api`: http://{address}/token answered 400 (invalid_client); look at the token in the target file and at what it is asked with"
        )
    );
    let is_attempt = |event: &&Event| matches!(event, Event::Attempted { .. });
    assert_eq!(told.events().iter().filter(is_attempt).count(), 1);
}
