//! Answers as Toxiproxy writes them: plain errors end with a line feed, JSON does not.

use super::shown::ShownProxy;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// A request that was done.
pub(super) struct Reply {
    status: StatusCode,
    content_type: &'static str,
    body: String,
}

/// A request that was not.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("bad request body: {0}")]
    Body(String),
    #[error("missing required field: {0}")]
    Missing(String),
    #[error("proxy not found")]
    NoProxy,
    #[error("proxy already exists")]
    ProxyExists,
    #[error("toxic not found")]
    NoToxic,
    #[error("toxic already exists")]
    ToxicExists,
    #[error("invalid toxic type")]
    ToxicType,
    #[error("stream was invalid, can be either upstream or downstream")]
    Stream,
    /// The operating system's word, as Go puts it.
    #[error("{0}")]
    Listen(String),
    /// Some of the proxies asked for stand: those that came before the one that failed.
    #[error("{why}")]
    Populate {
        why: Box<Failure>,
        proxies: Option<Vec<ShownProxy>>,
    },
}

#[derive(Serialize)]
struct ShownFailure<'a> {
    error: String,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    proxies: Option<&'a Option<Vec<ShownProxy>>>,
}

impl Reply {
    pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Result<Reply, Failure> {
        let body =
            serde_json::to_string(value).map_err(|error| Failure::Body(error.to_string()))?;
        Ok(Reply {
            status,
            content_type: JSON,
            body,
        })
    }

    pub(super) fn empty() -> Reply {
        Reply {
            status: StatusCode::NO_CONTENT,
            content_type: "",
            body: String::new(),
        }
    }

    /// The word by which a build of Toxiproxy without a version of its own calls itself: clients that look for features by number
    /// then use the requests that every version takes.
    pub(super) fn version() -> Reply {
        Reply {
            status: StatusCode::OK,
            content_type: "application/json;charset=utf-8",
            body: "{\"version\": \"git\"}\n".to_owned(),
        }
    }

    pub(super) fn text(body: String) -> Reply {
        Reply {
            status: StatusCode::OK,
            content_type: TEXT,
            body,
        }
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        if self.status == StatusCode::NO_CONTENT {
            return self.status.into_response();
        }
        let content_type = [(header::CONTENT_TYPE, self.content_type)];
        (self.status, content_type, self.body).into_response()
    }
}

impl Failure {
    fn status(&self) -> StatusCode {
        match self {
            Failure::Body(_) | Failure::Missing(_) | Failure::ToxicType | Failure::Stream => {
                StatusCode::BAD_REQUEST
            }
            Failure::NoProxy | Failure::NoToxic => StatusCode::NOT_FOUND,
            Failure::ProxyExists | Failure::ToxicExists => StatusCode::CONFLICT,
            Failure::Listen(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Failure::Populate { why, .. } => why.status(),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = self.status();
        let proxies = match &self {
            Failure::Populate { proxies, .. } => Some(proxies),
            _ => None,
        };
        let shown = ShownFailure {
            error: self.to_string(),
            status: status.as_u16(),
            proxies,
        };
        // Texts and numbers can always be written.
        let body = serde_json::to_string(&shown).unwrap_or_default();
        if proxies.is_some() {
            return (status, [(header::CONTENT_TYPE, JSON)], body).into_response();
        }
        plain(status, &format!("{body}\n"))
    }
}

/// A plain text, as Go's `http.Error` sends it.
pub(super) fn plain(status: StatusCode, text: &str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, TEXT),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (status, headers, text.to_owned()).into_response()
}
