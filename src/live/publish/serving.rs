//! A publisher's session: publishes out, acknowledgements in, PINGREQ when it is time.

use super::{Request, Stand, Task, acknowledged};
use crate::event::{Cause, Outcome};
use crate::live::ghosts::Ghost;
use crate::live::mqtt::{Connection, End, Packet};
use std::future::poll_fn;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

impl Task {
    /// Publishes until the connection ends, and by what, or nobody publishes any more (`None`).
    pub(super) async fn serve(
        &mut self,
        connection: &mut Connection,
        requests: &mut mpsc::Receiver<Request>,
    ) -> Option<Cause> {
        let mut next_ping = Instant::now() + self.keep_alive;
        self.pong_until = None;
        if let Some(ghost) = &self.ghost
            && let Err(end) = self.send(connection, &ghost.subscribe())
        {
            return Some(end.cause());
        }
        let early = std::mem::take(&mut self.early);
        if let Some(cause) = self.take(&early) {
            return Some(cause);
        }
        loop {
            let mut packets = Vec::new();
            let wake = self.pong_until.unwrap_or(next_ping);
            tokio::select! {
                biased;
                ended = poll_fn(|context| connection.poll_receive(context, &mut packets)) => {
                    if let Some(cause) = self.take(&packets) {
                        return Some(cause);
                    }
                    if let Err(end) = ended {
                        return Some(end.cause());
                    }
                }
                () = sleep_until(wake) => {
                    if self.pong_until.is_some() {
                        return Some(Cause::KeepAlive);
                    }
                    if let Err(end) = self.send(connection, &Packet::PingReq) {
                        return Some(end.cause());
                    }
                    next_ping = Instant::now() + self.keep_alive;
                    self.pong_until = Some(Instant::now() + self.timeout.min(self.keep_alive));
                }
                request = requests.recv(), if self.unanswered.len() < self.places => match request {
                    None => return None,
                    Some(request) => if let Err(end) = self.publish(connection, request) {
                        return Some(end.cause());
                    },
                },
            }
        }
    }

    /// What packets mean for the session; a cause ends it.
    fn take(&mut self, packets: &[Packet]) -> Option<Cause> {
        for packet in packets {
            self.count(packet, false);
            match packet {
                Packet::PubAck(answer) => {
                    let waits = self.unanswered.remove(&answer.packet_id);
                    waits.map(|waits| waits.send(acknowledged(answer.reason)));
                }
                Packet::PingResp => self.pong_until = None,
                Packet::SubAck(answer) if self.ghost.is_some() => {
                    if let Some(refused) = Ghost::refused(answer) {
                        let version = self.plan.target.devices[self.device].version;
                        self.why = Some(version.outcome_text(refused));
                        return Some(Cause::Protocol);
                    }
                    self.stands(Stand::Stands);
                }
                Packet::Publish(publish) => {
                    let now = self.clock.now();
                    let ghost = self.ghost.as_ref();
                    if let Some(event) = ghost.and_then(|ghost| ghost.saw(publish, now)) {
                        (self.sink)(event);
                    }
                }
                Packet::Disconnect(said) => return Some(Cause::Disconnected(said.reason)),
                _ => return Some(Cause::Protocol),
            }
        }
        None
    }

    fn publish(&mut self, connection: &mut Connection, request: Request) -> Result<(), End> {
        let Request {
            mut publish,
            answer,
        } = request;
        if answer.is_closed() {
            // Given up while it waited.
            return Ok(());
        }
        // A broker that takes nothing above QoS 0 acknowledges nothing.
        let acknowledged = publish.packet_id.is_some() && connection.qos(1) > 0;
        publish.packet_id = None;
        if acknowledged {
            let Some(packet) = self.free_packet() else {
                let _ = answer.send(Outcome::NotSent);
                return Ok(());
            };
            publish.packet_id = Some(packet);
        }
        let packet = publish.packet_id.unwrap_or_default();
        let sent = self.send(connection, &Packet::Publish(publish));
        let outcome = match &sent {
            Ok(true) if acknowledged => {
                self.unanswered.insert(packet, answer);
                return Ok(());
            }
            Ok(true) => Outcome::Ok,
            Ok(false) => Outcome::NotSent,
            Err(end) => end.outcome(),
        };
        let _ = answer.send(outcome);
        sent.map(|_| ())
    }

    /// The next packet id without a publish under way; `None` if all 65,535 have one.
    fn free_packet(&mut self) -> Option<u16> {
        for _ in 0..u16::MAX {
            self.next_packet = self.next_packet.checked_add(1).unwrap_or(1);
            if !self.unanswered.contains_key(&self.next_packet) {
                return Some(self.next_packet);
            }
        }
        None
    }
}
