//! Nobody but the hosts of the target file is contacted, whatever an answer or the environment says.

use super::stage::{FIRST_STEP, JOURNEY, Told, plan, request, run, step};
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use rushhour::event::Outcome;
use rushhour::net::hosts::Hosts;
use rushhour::net::http::Http;
use rushhour::plan::target::Method;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;

/// Counts who connects, and says nothing.
async fn stranger() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connects = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connects);
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    (address, connects)
}

async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let (elsewhere, connects) = stranger().await;
    let target = format!("http://{elsewhere}/");
    let redirect = get(move || async move { (StatusCode::FOUND, [("location", target)]) });
    let address = serve(Router::new().route("/", redirect)).await;
    let told = Told::default();
    let steps = vec![step(
        "near",
        request(Method::Get, &format!("http://{address}/")),
    )];
    let mut plan = plan(steps, 20.0, Duration::from_millis(500));
    plan.drain = Duration::from_secs(2);
    run(plan, &told).await;
    assert_eq!(told.finished(JOURNEY, Outcome::Refused(302)), 10);
    assert_eq!(connects.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_host_that_the_target_file_does_not_name_is_not_contacted() {
    let (elsewhere, connects) = stranger().await;
    let named = plan(
        vec![step("near", request(Method::Get, "http://127.0.0.1:9/"))],
        1.0,
        Duration::ZERO,
    );
    let hosts = Arc::new(Hosts::of(&named.target).unwrap());
    let http = Http::new(hosts, 1, Duration::from_secs(1)).unwrap();
    let same_host_other_port = format!("http://{elsewhere}/");
    let by_name = format!("http://localhost:{}/", elsewhere.port());
    for address in [same_host_other_port, by_name] {
        let answer = http.get(&address, Duration::from_secs(1)).await;
        assert_eq!(answer.result, Err(Outcome::NotSent), "{address}");
    }
    assert_eq!(connects.load(Ordering::SeqCst), 0);
}

const TARGET: &str = "RUSHHOUR_TEST_TARGET";

/// The environment of a process is everybody's, so the riders run in a process of their own: this very test, told by a variable
/// which part it plays.
#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_in_the_environment_sees_no_packet() {
    if let Ok(address) = std::env::var(TARGET) {
        return ride_ten(&address).await;
    }
    let (proxy, connects) = stranger().await;
    let answered = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&answered);
    let near = get(move || async move {
        counted.fetch_add(1, Ordering::SeqCst);
        "here"
    });
    let address = serve(Router::new().route("/", near)).await;
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([
        "--exact",
        "--nocapture",
        "live_users::strangers::a_proxy_in_the_environment_sees_no_packet",
    ]);
    child.env(TARGET, format!("http://{address}/"));
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        child.env(name, format!("http://{proxy}"));
        child.env(name.to_lowercase(), format!("http://{proxy}"));
    }
    child.env_remove("NO_PROXY").env_remove("no_proxy");
    let output = tokio::task::spawn_blocking(move || child.output())
        .await
        .unwrap()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert_eq!(answered.load(Ordering::SeqCst), 10);
    assert_eq!(connects.load(Ordering::SeqCst), 0);
    // Standard output belongs to the program: Goose, too, says nothing there ("All 500 users launched.").
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!said.contains("launched"), "{said}");
}

async fn ride_ten(address: &str) {
    let told = Told::default();
    let steps = vec![step("near", request(Method::Get, address))];
    let mut plan = plan(steps, 20.0, Duration::from_millis(500));
    plan.drain = Duration::from_secs(2);
    run(plan, &told).await;
    assert_eq!(told.answered(FIRST_STEP, Outcome::Ok), 10);
}
