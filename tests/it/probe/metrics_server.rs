//! A small HTTP server whose `/metrics` can be made slow, empty, dead, or begin anew.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// What the server says, and how fast.
#[derive(Debug, Clone, Default)]
pub struct Says {
    pub text: String,
    pub after: Duration,
    /// How often it was asked.
    asked: usize,
}

/// The server; it ends with its connections when it is dropped.
pub struct MetricsServer {
    pub address: SocketAddr,
    says: Arc<Mutex<Says>>,
    runtime: Option<Runtime>,
}

impl MetricsServer {
    pub fn start(text: &str) -> MetricsServer {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime
            .block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
            .unwrap();
        let address = listener.local_addr().unwrap();
        let says = Arc::new(Mutex::new(Says {
            text: text.to_owned(),
            ..Says::default()
        }));
        let router = Router::new()
            .route("/metrics", get(answer))
            .with_state(Arc::clone(&says));
        runtime.spawn(async move { axum::serve(listener, router).await });
        MetricsServer {
            address,
            says,
            runtime: Some(runtime),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    pub fn say(&self, text: &str) {
        self.says.lock().unwrap().text = text.to_owned();
    }

    pub fn asked(&self) -> usize {
        self.says.lock().unwrap().asked
    }

    pub fn answer_after(&self, after: Duration) {
        self.says.lock().unwrap().after = after;
    }

    pub fn die(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.die();
    }
}

async fn answer(State(says): State<Arc<Mutex<Says>>>) -> String {
    let Says { text, after, .. } = {
        let mut says = says.lock().unwrap();
        says.asked += 1;
        says.clone()
    };
    tokio::time::sleep(after).await;
    text
}
