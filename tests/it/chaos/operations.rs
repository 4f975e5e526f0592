//! Operations of the target as faults, with questions that say whether they act: the evacuation of a node of EMQX.

use super::components::break_with;
use super::stage::{heal, request, state};
use rushhour::plan::Target;
use rushhour::plan::fault::{FaultKind, OperationSpec, Question};
use rushhour::plan::json_path::JsonPath;
use rushhour::plan::target::Method;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What EMQX documents of evacuation: `stop` of a node that is not evacuated is a 400, and a node that is restarted goes on with it.
struct Emqx {
    address: std::net::SocketAddr,
    persisted: PathBuf,
    server: tokio::task::JoinHandle<()>,
}

impl Emqx {
    async fn start(persisted: &Path, address: &str) -> Emqx {
        use axum::http::StatusCode;
        use axum::routing::{get, post};
        let file = |persisted: &Path| persisted.to_owned();
        let (starts, stops, asks) = (file(persisted), file(persisted), file(persisted));
        let routes = axum::Router::new()
            .route(
                "/api/v5/load_rebalance/n2/evacuation/start",
                post(move || async move {
                    std::fs::write(&starts, "evacuating").unwrap();
                    "{}"
                }),
            )
            .route(
                "/api/v5/load_rebalance/n2/evacuation/stop",
                post(move || async move {
                    match std::fs::remove_file(&stops) {
                        Ok(()) => (StatusCode::OK, "{}"),
                        Err(_) => (StatusCode::BAD_REQUEST, "{\"code\":\"BAD_REQUEST\"}"),
                    }
                }),
            )
            .route(
                "/api/v5/load_rebalance/status",
                get(move || async move {
                    match asks.exists() {
                        true => "{\"status\":\"enabled\",\"process\":\"evacuation\"}",
                        false => "{\"status\":\"disabled\"}",
                    }
                }),
            );
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Emqx {
            address,
            persisted: persisted.to_owned(),
            server,
        }
    }

    fn target(&self) -> Target {
        let at = |path: &str| format!("http://{}/api/v5/load_rebalance{path}", self.address);
        let is = vec![(
            JsonPath::parse("$.status").unwrap(),
            vec!["disabled".to_owned()],
        )];
        let operation = OperationSpec {
            name: "evacuate".to_owned(),
            request: request(Method::Post, &at("/n2/evacuation/start")),
            undo: Some(request(Method::Post, &at("/n2/evacuation/stop"))),
            observe: None,
            undone: Some(Question {
                request: request(Method::Get, &at("/status")),
                is,
            }),
        };
        Target {
            operations: vec![operation],
            ..Target::default()
        }
    }

    /// The node is gone; what it has on its disk stays.
    async fn stop(self) -> (PathBuf, String) {
        self.server.abort();
        let _ = self.server.await;
        (self.persisted, self.address.to_string())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evacuation_is_stopped_even_after_the_node_was_restarted() {
    let (state, folder) = (state(), TempDir::new().unwrap());
    let persisted = folder.path().join(".evacuation");
    let emqx = Emqx::start(&persisted, "127.0.0.1:0").await;
    let target = emqx.target();
    let mut run = break_with(&target, FaultKind::Operate { operation: 0 }, &state).await;
    let seen = run.observed().await;
    assert!(seen.contains("enabled"), "{seen}");
    let (persisted, address) = emqx.stop().await;
    let remaining = run.faults.undo_all().await.unwrap();
    assert_eq!(remaining.len(), 1, "nobody answers, so nobody knows");
    drop(run);
    // It resumes what it was asked for before.
    let emqx = Emqx::start(&persisted, &address).await;
    let (code, said) = heal(&state).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("disabled"), "{said}");
    assert!(!persisted.exists());
    let (_, said) = heal(&state).await;
    assert_eq!(said, "nothing to heal\n");
    emqx.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_undid_is_not_undone_again() {
    let (state, folder) = (state(), TempDir::new().unwrap());
    let persisted = folder.path().join(".evacuation");
    let emqx = Emqx::start(&persisted, "127.0.0.1:0").await;
    let target = emqx.target();
    let mut run = break_with(&target, FaultKind::Operate { operation: 0 }, &state).await;
    run.observed().await;
    std::fs::remove_file(&persisted).unwrap();
    // `stop` would be refused now.
    run.heals().await;
    emqx.stop().await;
}
