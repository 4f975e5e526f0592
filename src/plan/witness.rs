//! What the target itself can say about hubs.

use super::json_path::JsonPath;
use super::target::Request;

/// Where the target lists its live sessions with the client certificates that it saw; it may do so page by page.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveSessions {
    /// `<after>` is what `next` of the page before was, and empty for the first.
    pub request: Request,
    /// The list in an answer; the next two are paths within one of its entries.
    pub list: JsonPath,
    pub client_id: JsonPath,
    /// The serial number of the certificate, in hexadecimal.
    pub certificate: JsonPath,
    /// What the next page begins after; nothing there: no more pages.
    pub next: Option<JsonPath>,
}
