//! TCP connections to permitted peers.
//!
//! Decides the source address and the options of a socket. Knows nothing of what is said over it, and sets no timeout: whoever
//! asks has the deadline of its agent.

use super::hosts::Peer;
use super::tls::trouble;
use crate::event::Outcome;
use nix::libc;
use nix::sys::socket::{setsockopt, sockopt};
use socket2::SockRef;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr};
use tokio::net::{TcpSocket, TcpStream};

/// Source addresses used towards the loopback network, where every address of 127.0.0.0/8 is ours.
pub const LOOPBACK_SOURCES: u64 = 64;

/// The address that a connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The one that the system chooses.
    System,
    /// For a loopback destination the n-th of [`LOOPBACK_SOURCES`] addresses, counted round; elsewhere the system's.
    Spread(u64),
}

impl Source {
    /// The address to bind before connecting to `destination`; `None` leaves it to the system.
    ///
    /// From half of the port range on, per source address and destination, a connect costs 20 times as much
    /// (740 µs in place of 37), and at its end there are no more: hence many sources.
    #[must_use]
    pub fn address(self, destination: IpAddr) -> Option<Ipv4Addr> {
        let Source::Spread(nth) = self else {
            return None;
        };
        let IpAddr::V4(destination) = destination.to_canonical() else {
            return None;
        };
        // At most 64, so it fits the last octet.
        let place = u8::try_from(nth % LOOPBACK_SOURCES).unwrap_or_default();
        destination
            .is_loopback()
            .then(|| Ipv4Addr::new(127, 0, 1, 1 + place))
    }
}

/// Connects to `peer` with Nagle's algorithm off.
///
/// # Errors
/// As the operating system says; [`outcome`] classifies it.
pub async fn connect(peer: Peer, source: Source) -> io::Result<TcpStream> {
    let address = peer.address();
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_nodelay(true)?;
    if let Some(from) = source.address(address.ip()) {
        // Without it, bind reserves a port by itself: 3.3 ms each, and the range ends for all destinations together.
        setsockopt(&socket, sockopt::IpBindAddressNoPort, &true)?;
        socket.bind(SocketAddr::from((from, 0)))?;
    }
    socket.connect(address).await
}

/// Ends the connection with FIN, after what was written.
pub fn close(stream: TcpStream) {
    // A plain close would send RST if something of the peer's is unread. No shutdown is needed if there is no connection.
    let _ = SockRef::from(&stream).shutdown(Shutdown::Write);
    drop(stream);
}

/// Ends the connection with RST: nothing lingers in FIN or TIME_WAIT states, and what the peer has sent is thrown away.
pub fn reset(stream: TcpStream) {
    // A socket that is no longer connected needs no RST.
    let _ = stream.set_zero_linger();
    drop(stream);
}

/// What a failure to connect, read or write means for the attempt.
#[must_use]
pub fn outcome(error: &io::Error) -> Outcome {
    match error.raw_os_error() {
        // Out of descriptors, ports, buffers: nothing has left this machine.
        Some(
            libc::EMFILE
            | libc::ENFILE
            | libc::EADDRNOTAVAIL
            | libc::EADDRINUSE
            | libc::ENOBUFS
            | libc::ENOMEM,
        ) => return Outcome::NotSent,
        // The system's own limit on unanswered SYNs or retransmissions.
        Some(libc::ETIMEDOUT) => return Outcome::TimedOut,
        _ => {}
    }
    if let Some(error) = super::stream::tls_error(error) {
        return trouble(error).map_or(Outcome::Protocol, Outcome::Tls);
    }
    match error.kind() {
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof
        | io::ErrorKind::WriteZero => Outcome::Reset,
        io::ErrorKind::TimedOut => Outcome::TimedOut,
        io::ErrorKind::InvalidData => Outcome::Protocol,
        _ => Outcome::Unreachable,
    }
}
