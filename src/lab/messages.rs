//! What the lab's processes say to each other, and how: one JSON object a line.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// A process of the lab to the supervisor, on its standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChildSays {
    /// The port stands.
    Listening,
    /// Everything that it needs works.
    Ready,
    /// It can't do its part, and ends.
    Failed { why: String },
    /// The gateway was asked to have this shard started anew.
    Restart { shard: u16 },
}

/// The supervisor to a process of the lab, on its standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParentSays {
    /// The shard stands again, or why it doesn't.
    Restarted { shard: u16, problem: Option<String> },
}

/// A shard to the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToGateway {
    /// The first message of a link.
    Hello { shard: u16 },
    /// May this hub be connected? Answered by `ToShard::Checked` with the same number.
    Check {
        request: u64,
        serial: String,
        /// It comes, and could be told to go elsewhere.
        comes: bool,
    },
    /// A TLS handshake was made, with or without an earlier session.
    Handshake { resumed: bool },
    /// A TLS handshake failed.
    HandshakeFailed { trouble: TlsTrouble },
    /// A session stands.
    Opened {
        serial: String,
        generation: u64,
        client: Client,
        /// The generation of the connection whose session goes on with this one, messages on their way included.
        resumes: Option<u64>,
    },
    /// A client proved anew on its live connection who it is.
    Reauthenticated,
    /// The session takes commands from now on.
    Listening { serial: String, generation: u64 },
    /// The connection ended, and the session with it unless the shard keeps it and takes commands for it.
    Closed {
        serial: String,
        generation: u64,
        cause: Cause,
        keeps: bool,
    },
    /// A CONNECT was turned away.
    Refused { cause: Cause },
    /// The hub took the command.
    Delivered { command: String },
    /// The command could not be handed to the hub now.
    Undelivered { command: String },
    /// The hub published an answer.
    Answer { serial: String, payload: String },
    /// The hub published its state.
    State { count: u64 },
}

/// The gateway to a shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToShard {
    /// The answer to a check. The generation orders sessions of one hub over all shards.
    Checked {
        request: u64,
        answer: Check,
        generation: u64,
        /// It belongs on another shard.
        elsewhere: Option<Elsewhere>,
    },
    /// Checks that take longer than this end the connection; none means that slowness is no reason.
    ExpireAfter { milliseconds: Option<u64> },
    /// Check every live connection again.
    Recheck,
    /// Publish this command to the hub, if it is still the same session.
    Deliver {
        serial: String,
        generation: u64,
        command: String,
        action: String,
        /// For how long it is of use, in milliseconds.
        ttl_ms: u64,
    },
    /// Close the session, if it is still the same.
    Close {
        serial: String,
        generation: u64,
        cause: Cause,
    },
    /// Send the hub to another shard, if it is still the same session.
    Move {
        serial: String,
        generation: u64,
        moves: Moves,
        /// `host:port` of the other shard.
        reference: String,
    },
}

/// Where a hub that comes to the wrong shard is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elsewhere {
    /// The reason code of the CONNACK.
    pub code: u8,
    /// `host:port` of its shard.
    pub reference: String,
}

/// How hubs are made to go to another shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Moves {
    /// DISCONNECT "use another server", with a reference.
    #[serde(rename = "disconnect-9c")]
    UseAnotherServer,
    /// DISCONNECT "server moved", with a reference.
    #[serde(rename = "disconnect-9d")]
    ServerMoved,
    /// DISCONNECT "server shutting down", which says nothing of where to go.
    #[serde(rename = "8b")]
    ShuttingDown,
    /// The end of the connection without a word.
    #[serde(rename = "fin")]
    Fin,
    /// A reset.
    #[serde(rename = "rst")]
    Rst,
}

impl Moves {
    /// The reason code of the CONNACK for moved hubs that come to the wrong shard: use another server, or server moved.
    pub fn connack(self) -> u8 {
        match self {
            Moves::ServerMoved => 0x9d,
            _ => 0x9c,
        }
    }
}

/// What the gateway found out about a hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Check {
    Allowed,
    Revoked,
    /// Nobody could say: the pool or the database gave no answer.
    Unknown,
}

/// What a shard sees of the client of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Client {
    /// The version of MQTT.
    pub protocol: String,
    /// The version of TLS, if there is any.
    pub tls: Option<String>,
    /// Whether the handshake resumed an earlier session.
    pub resumed: bool,
    /// The serial number of the client's certificate, in hexadecimal digits.
    pub certificate: Option<String>,
}

/// Why a TLS handshake failed, as the shard sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsTrouble {
    /// The client showed no certificate where one is needed.
    NoCertificate,
    /// Its certificate is of another authority.
    UnknownIssuer,
    /// Its certificate is not valid any more.
    Expired,
    /// Its certificate is not valid yet.
    NotYetValid,
    /// Its certificate can't be used for another reason.
    BadCertificate,
    /// No version or cipher suite that both sides have.
    NothingInCommon,
    /// It does not speak TLS.
    NoTls,
    /// It did not take the shard's certificate, or gave up by an alert.
    RefusedByClient,
    /// It closed the connection.
    Gone,
    /// It took too long.
    Slow,
    Other,
}

/// Why a session ended or never began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// DISCONNECT.
    Disconnect,
    /// The connection was closed or reset by the other side.
    Gone,
    /// Nothing came for one and a half times the keep-alive.
    KeepAlive,
    /// A newer session of the same hub.
    Takeover,
    /// A check said that the hub is revoked.
    Revoked,
    /// A slow check was taken for an expired session.
    Expired,
    /// Nobody could say whether the hub may connect.
    Unavailable,
    /// Told to go to another shard.
    Rebalance,
    /// It came to another shard than its own, and was told where that is.
    Elsewhere,
    /// It broke the protocol, or asked for what the shard doesn't do.
    Protocol,
    /// It did not read what was sent.
    Stuck,
    /// More connects at a time than the shard takes.
    Throttled,
    /// Its shard is gone.
    ShardLost,
    /// A session whose connection had ended before was kept for as long as was agreed on.
    SessionExpired,
}

/// Reads the next message; `None` at the end of the stream or at a line that is no message.
pub async fn next<T: DeserializeOwned>(
    lines: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
) -> Option<T> {
    line.clear();
    match lines.read_until(b'\n', line).await {
        Ok(length) if length > 0 => serde_json::from_slice(line).ok(),
        _ => None,
    }
}

/// Writes messages until the channel or the stream ends; what is there at once goes out in one piece.
pub async fn write_all<T: Serialize>(
    mut messages: mpsc::Receiver<T>,
    mut stream: impl AsyncWrite + Unpin,
) {
    const MOST_AT_ONCE: usize = 256;
    let mut batch = Vec::with_capacity(MOST_AT_ONCE);
    let mut bytes = Vec::new();
    while messages.recv_many(&mut batch, MOST_AT_ONCE).await > 0 {
        bytes.clear();
        for message in batch.drain(..) {
            serde_json::to_writer(&mut bytes, &message).expect("plain data becomes JSON");
            bytes.push(b'\n');
        }
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
