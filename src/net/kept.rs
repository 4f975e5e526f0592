//! Connections that a server keeps open for the next request, and may close just when it comes.
//!
//! Decides when a request is sent again within one attempt: its method says that doing it twice does no more than doing it once
//! (RFC 9110 §9.2.2), and the connection had carried an answer before and ended ahead of the next one (RFC 9112 §9.3.1). A server
//! that closes idle connections is no failure of the target then; what ends on a new connection always is, and a POST is never
//! repeated. A request that was not written yet is moved to another connection by the client itself.

use crate::plan::target::Method;
use hyper_util::client::legacy::Error as ClientError;
use hyper_util::client::legacy::connect::HttpInfo;
use reqwest::{RequestBuilder, Response};
use std::collections::HashSet;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Connections that are remembered; beyond, all are forgotten, and their end counts like that of a new one.
const MOST: usize = 65_536;

/// Both ends of a connection.
type Ends = (SocketAddr, SocketAddr);

/// The connections that have carried an answer.
#[derive(Debug, Default)]
pub(super) struct Kept(Mutex<HashSet<Ends>>);

impl Kept {
    /// The connection has carried this answer.
    pub fn answered(&self, response: &Response) {
        let Some(info) = response.extensions().get::<HttpInfo>() else {
            return;
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert((info.local_addr(), info.remote_addr()));
    }

    /// Whether the connection on which this happened had carried an answer before. It is forgotten.
    pub fn forget(&self, error: &reqwest::Error) -> bool {
        ends(error).is_some_and(|ends| {
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&ends)
        })
    }
}

fn ends(error: &reqwest::Error) -> Option<Ends> {
    let mut source = error.source();
    while let Some(here) = source {
        if let Some(connected) = here
            .downcast_ref::<ClientError>()
            .and_then(ClientError::connect_info)
        {
            let mut extras = hyper::http::Extensions::new();
            connected.get_extras(&mut extras);
            return extras
                .get::<HttpInfo>()
                .map(|info| (info.local_addr(), info.remote_addr()));
        }
        source = here.source();
    }
    None
}

/// One attempt of a request: what is sent, and what may be sent again until its time is over.
#[derive(Debug)]
pub struct Sending {
    next: Option<RequestBuilder>,
    is_repeatable: bool,
    until: Instant,
}

impl Sending {
    /// An attempt that gives up `timeout` from now.
    #[must_use]
    pub fn new(request: RequestBuilder, method: Method, timeout: Duration) -> Sending {
        Sending {
            next: Some(request),
            is_repeatable: matches!(method, Method::Get | Method::Put | Method::Delete),
            until: Instant::now() + timeout,
        }
    }

    /// What is to be sent now; `None` if everything that may be sent was.
    pub fn request(&mut self) -> Option<RequestBuilder> {
        let request = self.next.take()?;
        if self.is_repeatable {
            self.next = request.try_clone();
        }
        Some(request.timeout(self.until.saturating_duration_since(Instant::now())))
    }

    /// Whether there is something to send again, and time for it.
    pub(super) fn goes_on(&self) -> bool {
        self.next.is_some() && Instant::now() < self.until
    }
}
