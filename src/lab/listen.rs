//! Listening: which ports the lab takes, and how its sockets stand.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::{TcpListener, TcpSocket};

/// Room for a fleet that connects at once; the kernel caps it at `net.core.somaxconn`.
const BACKLOG: u32 = 65_535;

/// A port that can't be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error(
        "{address} is taken by another process ({source}); end that one, or start the lab again for another port"
    )]
    Taken {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("can't listen on {address}: {source}")]
    Other {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("no free port found below the range of outgoing connections")]
    NoneFree,
}

/// Listens on the port of 127.0.0.1. Needs a runtime.
///
/// # Errors
/// If the port is taken or the system refuses.
pub fn listen(port: u16) -> Result<TcpListener, ListenError> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let bound = TcpSocket::new_v4().and_then(|socket| {
        // A shard that is started again must get its port while old connections still linger.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    });
    bound.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::Taken { address, source },
        _ => ListenError::Other { address, source },
    })
}

/// Lets this process hold as many connections as the system allows it.
pub fn raise_file_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Refused, the limit stays what it was; connections beyond it wait in the backlog.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// So many distinct ports of 127.0.0.1 that nobody listens on.
///
/// They lie below the range from which outgoing connections get their ports: while a killed shard is down, no
/// reconnecting hub can take its port by chance.
///
/// # Errors
/// If there are not enough.
pub fn free_ports(count: usize) -> Result<Vec<u16>, ListenError> {
    let first_outgoing = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse::<u16>().ok())
        .unwrap_or(32_768);
    let low: u16 = if first_outgoing > 12_000 {
        10_000
    } else {
        1_025
    };
    let span = first_outgoing.saturating_sub(low).max(1);
    // Labs that start at the same time begin at different places.
    let mut next =
        u16::try_from(std::process::id().wrapping_mul(7919) % u32::from(span)).unwrap_or(0);
    // All are held until all are found, so that none is given twice.
    let mut held = Vec::new();
    for _ in 0..span {
        if held.len() == count {
            break;
        }
        let port = low + next;
        next = (next + 1) % span;
        if let Ok(listener) = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            held.push((port, listener));
        }
    }
    if held.len() < count {
        return Err(ListenError::NoneFree);
    }
    Ok(held.into_iter().map(|(port, _)| port).collect())
}
