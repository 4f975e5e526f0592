//! What publishers do while there is no connection.

use super::Request;
use crate::event::Outcome;
use tokio::sync::mpsc;

/// Waits for `ready` while every publish is answered with `Unreachable`; `None` if nobody publishes any more.
pub(super) async fn refuse<T>(
    requests: &mut mpsc::Receiver<Request>,
    ready: impl Future<Output = T>,
) -> Option<T> {
    let mut ready = std::pin::pin!(ready);
    loop {
        tokio::select! {
            biased;
            result = &mut ready => return Some(result),
            request = requests.recv() => {
                let _ = request?.answer.send(Outcome::Unreachable);
            }
        }
    }
}
