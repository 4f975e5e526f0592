//! Shows the page of a running test to whoever asks, on a thread of its own.
//!
//! The run makes the page and never waits for a reader; a reader gets the last one. Nothing can be changed from here.

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// The version of the text format.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The page, and who shows it. Dropping it ends the showing.
#[derive(Debug)]
pub struct Exporter {
    page: Arc<Mutex<Arc<str>>>,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Why nothing is exported.
#[derive(Debug, thiserror::Error)]
#[error("--metrics {address}: {why}")]
pub struct CannotExport {
    address: SocketAddr,
    why: io::Error,
}

impl Exporter {
    /// Listens at this address and shows an empty page.
    ///
    /// # Errors
    /// If the address can't be had.
    pub fn start(address: SocketAddr) -> Result<Exporter, CannotExport> {
        let cannot = |why| CannotExport { address, why };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(cannot)?;
        let listener = std::net::TcpListener::bind(address).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let bound = listener.local_addr().map_err(cannot)?;
        let page = Arc::new(Mutex::new(Arc::from("")));
        let router = Router::new()
            .route("/metrics", get(show))
            .route("/", get(|| async { Redirect::temporary("/metrics") }))
            .with_state(Arc::clone(&page));
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || {
                runtime.block_on(async move {
                    let Ok(listener) = TcpListener::from_std(listener) else {
                        return;
                    };
                    tokio::select! {
                        _ = axum::serve(listener, router) => {}
                        _ = stopped => {}
                    }
                });
            })
            .map_err(cannot)?;
        Ok(Exporter {
            page,
            address: bound,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shows this page from now on.
    pub fn show(&self, page: &str) {
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = Arc::from(page);
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // Its thread may have ended by itself.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn show(State(page): State<Arc<Mutex<Arc<str>>>>) -> Response {
    let page = Arc::clone(&page.lock().unwrap_or_else(PoisonError::into_inner));
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], page.to_string()).into_response()
}
