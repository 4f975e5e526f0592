//! mosquitto's `$SYS` topics, by an MQTT connection that is opened before the load and held.
//!
//! mosquitto counts no connects: it publishes a load average. `connects` come from inverting it, exactly but for the rounding to two
//! digits. Topics are published only when they change; `uptime` always does, so it is the heartbeat and the clock.

use super::prometheus::Series;
use crate::measure::pool::{Gap, GapReason};
use crate::net::connect::{self, Source};
use crate::net::hosts::{Endpoint, Hosts};
use crate::net::stream::Stream;
use bytes::BytesMut;
use rumqttc::mqttbytes::v4::{Connect, ConnectReturnCode, Packet, PingReq, Publish, Subscribe};
use rumqttc::mqttbytes::{Error, QoS};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio::time::Instant;

const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// The largest packet that is taken.
const MOST_BYTES: usize = 256 * 1024;
const FILTER: &str = "$SYS/broker/#";
const UPTIME: &str = "$SYS/broker/uptime";
const CONNECTED: &str = "$SYS/broker/clients/connected";
/// CONNECTs a minute, as an average that forgets with a time constant of one minute.
const LOAD: &str = "$SYS/broker/load/connections/1min";
/// Topics of one interval arrive together, `uptime` first; after this long they are there.
const TOGETHER: Duration = Duration::from_millis(150);
/// Without a heartbeat for this many intervals, and at least [`LEAST_PATIENCE`], nothing is known.
const MISSED_BEATS: u32 = 3;
const LEAST_PATIENCE: Duration = Duration::from_secs(25);

/// What the topics say, and what follows from them.
#[derive(Debug, Clone, Default)]
pub struct SysTopics {
    values: BTreeMap<String, f64>,
    /// The heartbeat before the last one: uptime in seconds and load.
    known: Option<(f64, f64)>,
    /// The last heartbeat, whose topics may not all be there yet.
    beat: Option<f64>,
    connects: f64,
    connected_at_first: Option<f64>,
    disconnects: f64,
}

impl SysTopics {
    /// A message on a topic; a value that is no number says nothing.
    pub fn heard(&mut self, topic: &str, payload: &str) {
        let number = payload.split_whitespace().next();
        let Some(value) = number.and_then(|number| number.parse::<f64>().ok()) else {
            return;
        };
        if topic == UPTIME {
            self.settle();
            self.beat = Some(value);
        }
        self.values.insert(topic.to_owned(), value);
    }

    /// Takes the topics of the last heartbeat for complete.
    ///
    /// mosquitto's own formula, `new = I + e^(-dt/60) * (old - I)` with `I` in events a minute, solved for `I`
    /// (field notes on probes, §2; `sys_tree.c`).
    pub fn settle(&mut self) {
        let Some(uptime) = self.beat.take() else {
            return;
        };
        let load = self.values.get(LOAD).copied().unwrap_or(0.0);
        if let Some((before, old)) = self.known {
            let seconds = uptime - before;
            // It began anew: its average began at zero, and so did its counters.
            if seconds < 0.0 {
                self.connects = 0.0;
                self.disconnects = 0.0;
                self.connected_at_first = None;
            } else if seconds > 0.0 {
                let kept = (-seconds / 60.0).exp();
                let a_minute = (load - kept * old) / (1.0 - kept);
                self.connects += (a_minute * seconds / 60.0).max(0.0);
            }
        }
        self.known = Some((uptime, load));
        if let Some(connected) = self.values.get(CONNECTED).copied() {
            let first = *self.connected_at_first.get_or_insert(connected);
            // Rounding must not make a counter shrink.
            let ended = self.connects - (connected - first);
            self.disconnects = self.disconnects.max(ended);
        }
    }

    /// Everything that was heard, and the counters `connects` and `disconnects` since the first heartbeat.
    #[must_use]
    pub fn series(&self) -> Vec<Series> {
        let one = |name: &str, value: f64| Series {
            name: name.to_owned(),
            labels: Vec::new(),
            value,
        };
        let mut series: Vec<Series> = self
            .values
            .iter()
            .map(|(topic, value)| one(topic, *value))
            .collect();
        if self.known.is_some() {
            series.push(one("connects", self.connects));
            series.push(one("disconnects", self.disconnects));
        }
        series
    }
}

/// What the listening task knows.
#[derive(Debug, Default)]
struct Heard {
    topics: SysTopics,
    beat_at: Option<Instant>,
    interval: Duration,
    ended: Option<String>,
}

/// A connection that listens.
pub(super) struct Sys {
    endpoint: Endpoint,
    hosts: Arc<Hosts>,
    heard: Arc<Mutex<Heard>>,
    listening: Option<JoinHandle<()>>,
}

impl Sys {
    /// A listener at this broker, not yet connected.
    ///
    /// # Errors
    /// If the text is no address.
    pub fn new(address: &str, hosts: &Arc<Hosts>) -> Result<Sys, String> {
        Ok(Sys {
            endpoint: Endpoint::parse(address)?,
            hosts: Arc::clone(hosts),
            heard: Arc::default(),
            listening: None,
        })
    }

    /// What was heard by now; connects first where there is no connection.
    pub async fn read(&mut self) -> Result<Vec<Series>, Gap> {
        if self.listening.as_ref().is_none_or(JoinHandle::is_finished) {
            let said = self.lock().ended.take();
            self.open().await?;
            if let Some(why) = said {
                return Err(self.gap(GapReason::Unreachable, &why));
            }
        }
        let mut heard = self.lock();
        let Some(beat_at) = heard.beat_at else {
            return Err(self.gap(
                GapReason::NothingFound,
                "no $SYS topic has come by now (sys_interval)",
            ));
        };
        let silent = beat_at.elapsed();
        if silent > LEAST_PATIENCE.max(heard.interval * MISSED_BEATS) {
            return Err(self.gap(GapReason::TimedOut, "$SYS topics are no longer published"));
        }
        if silent > TOGETHER {
            heard.topics.settle();
        }
        Ok(heard.topics.series())
    }

    async fn open(&mut self) -> Result<(), Gap> {
        let peers = self.hosts.peers(&self.endpoint).await;
        let peers = peers.map_err(|error| self.gap(GapReason::Unreachable, &error.to_string()))?;
        let mut last = "no address".to_owned();
        for peer in peers {
            match connect::connect(peer, Source::System).await {
                Ok(tcp) => {
                    let heard = Arc::clone(&self.heard);
                    self.listening = Some(tokio::spawn(async move {
                        let ended = listen(Stream::Plain(tcp), &heard).await;
                        heard.lock().unwrap_or_else(PoisonError::into_inner).ended = Some(ended);
                    }));
                    return Ok(());
                }
                Err(error) => last = error.to_string(),
            }
        }
        Err(self.gap(GapReason::Unreachable, &last))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gap(&self, reason: GapReason, why: &str) -> Gap {
        Gap {
            reason,
            detail: format!("{}: {why}", self.endpoint),
        }
    }
}

impl Drop for Sys {
    fn drop(&mut self) {
        if let Some(listening) = &self.listening {
            listening.abort();
        }
    }
}

/// Listens until the connection ends, and says why it did.
async fn listen(stream: Stream, heard: &Mutex<Heard>) -> String {
    let (mut from, mut to) = tokio::io::split(stream);
    match converse(&mut from, &mut to, heard).await {
        Ok(()) => "the broker closed the connection".to_owned(),
        Err(why) => why,
    }
}

async fn converse(
    from: &mut ReadHalf<Stream>,
    to: &mut WriteHalf<Stream>,
    heard: &Mutex<Heard>,
) -> Result<(), String> {
    // Any id will do: the broker makes one up for an empty one.
    let mut hello = Connect::new("");
    hello.keep_alive = u16::try_from(KEEP_ALIVE.as_secs()).unwrap_or(u16::MAX);
    hello.clean_session = true;
    let mut out = BytesMut::new();
    let written = hello.write(&mut out);
    written.map_err(|error| error.to_string())?;
    let mut bytes = BytesMut::new();
    let mut ping = tokio::time::interval(KEEP_ALIVE / 2);
    ping.tick().await;
    loop {
        if !out.is_empty() {
            let sent = to.write_all_buf(&mut out).await;
            sent.map_err(|error| error.to_string())?;
        }
        tokio::select! {
            read = from.read_buf(&mut bytes) => {
                if read.map_err(|error| error.to_string())? == 0 {
                    return Ok(());
                }
                while let Some(packet) = next(&mut bytes)? {
                    answer(packet, heard, &mut out)?;
                }
            }
            _ = ping.tick() => {
                PingReq.write(&mut out).map_err(|error| error.to_string())?;
            }
        }
    }
}

fn next(bytes: &mut BytesMut) -> Result<Option<Packet>, String> {
    match Packet::read(bytes, MOST_BYTES) {
        Ok(packet) => Ok(Some(packet)),
        Err(Error::InsufficientBytes(_)) => Ok(None),
        Err(error) => Err(format!("no MQTT: {error}")),
    }
}

fn answer(packet: Packet, heard: &Mutex<Heard>, out: &mut BytesMut) -> Result<(), String> {
    match packet {
        Packet::ConnAck(answer) if answer.code == ConnectReturnCode::Success => {
            let mut subscribe = Subscribe::new(FILTER, QoS::AtMostOnce);
            subscribe.pkid = 1;
            subscribe.write(out).map_err(|error| error.to_string())?;
        }
        Packet::ConnAck(answer) => return Err(format!("refused: {:?}", answer.code)),
        Packet::Publish(publish) => hear(&publish, heard),
        _ => {}
    }
    Ok(())
}

fn hear(publish: &Publish, heard: &Mutex<Heard>) {
    let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    let payload = String::from_utf8_lossy(&publish.payload);
    // What is retained is a heartbeat too: that of the last interval, whole.
    if publish.topic == UPTIME {
        let now = Instant::now();
        heard.interval = heard.beat_at.map_or(Duration::ZERO, |before| now - before);
        heard.beat_at = Some(now);
    }
    heard.topics.heard(&publish.topic, &payload);
}
