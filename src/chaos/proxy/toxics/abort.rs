//! Requests are answered with a status and never reach the target. The connection goes on where the client keeps it alive.
//!
//! A request that is sent before the one before it was answered passes: its answer would come out of turn.

use super::{Draws, Progress, Step, pass_end};
use crate::chaos::proxy::queue::Queue;
use crate::chaos::proxy::requests::{Head, Seen, see};
use axum::http::StatusCode;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

const BODY: &str = "answered by the fault proxy\n";

/// Of the requests this share; which ones is drawn from the seed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Abort {
    pub status: u16,
    pub share: f64,
}

impl Abort {
    pub(super) fn step(&self, progress: &mut Progress, queue: &mut Queue, draws: Draws) -> Step {
        loop {
            if progress.over {
                queue.discard();
            }
            let Some(arrived) = queue.front().map(|front| front.arrived) else {
                return pass_end(queue);
            };
            match see(progress, queue) {
                Seen::Wait => return Step::Nothing,
                Seen::Foreign => return Step::Emit(queue.take_front(), arrived),
                Seen::Head(head, bytes) => {
                    let number = progress.pieces;
                    progress.pieces += 1;
                    let in_turn = number == 0 || progress.answered;
                    let chosen = in_turn && draws.chooses(self.share, number);
                    progress.requests.begin(&head);
                    let taken = queue.take(bytes);
                    if !chosen {
                        progress.answered = false;
                        return Step::Emit(taken, arrived);
                    }
                    progress.hits += 1;
                    // Who waits to be told to go on must not wait for ever.
                    if head.expects || progress.requests.at_head() {
                        return self.answer(progress, &head);
                    }
                    progress.aborted = Some(head);
                }
                Seen::Body(bytes) => {
                    let taken = queue.take(bytes);
                    match progress.aborted {
                        None => return Step::Emit(taken, arrived),
                        Some(head) if progress.requests.at_head() => {
                            return self.answer(progress, &head);
                        }
                        Some(_) => {}
                    }
                }
            }
        }
    }

    fn answer(&self, progress: &mut Progress, head: &Head) -> Step {
        progress.aborted = None;
        progress.answered = true;
        progress.over = !head.keeps || head.expects;
        let reason = StatusCode::from_u16(self.status)
            .ok()
            .and_then(|status| status.canonical_reason())
            .unwrap_or("Aborted");
        let connection = if progress.over { "close" } else { "keep-alive" };
        // RFC 9110, §8.6: neither a 204 nor a 304 has a body, and a 204 no length either.
        let (length, body) = match self.status {
            204 => (String::new(), ""),
            304 => ("content-length: 0\r\n".to_owned(), ""),
            _ => (
                format!(
                    "content-length: {}\r\ncontent-type: text/plain\r\n",
                    BODY.len()
                ),
                if head.asks_for_head { "" } else { BODY },
            ),
        };
        let text = format!(
            "HTTP/1.1 {} {reason}\r\n{length}connection: {connection}\r\n\r\n{body}",
            self.status
        );
        Step::Answer {
            bytes: Bytes::from(text),
            last: progress.over,
        }
    }
}
