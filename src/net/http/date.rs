//! The clock of a server, as it tells it.

use super::Http;
use std::time::{Duration, SystemTime};

impl Http {
    /// The `Date` of the answer to `GET`, whatever else the server answers; `None` without one.
    pub async fn date(&self, address: &str, timeout: Duration) -> Option<SystemTime> {
        let request = self.client.get(self.address(address).ok()?);
        let answer = request.timeout(timeout).send().await.ok()?;
        let date = answer.headers().get("date")?.to_str().ok()?;
        httpdate::parse_http_date(date).ok()
    }
}
