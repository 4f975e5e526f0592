//! Where connections come in and how they go out: the listening socket of a link, and the connect to what is behind it.

use nix::sys::socket::{Backlog, listen, setsockopt, sockopt};
use socket2::SockRef;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Connections that wait to be accepted.
const BACKLOG: u32 = 4096;

/// The socket of a link. Shut it stays bound and does not listen, so the system refuses and nobody else can take the address.
pub(super) enum Door {
    Open(TcpListener),
    Shut(std::net::TcpListener),
}

impl Door {
    pub(super) fn turned(self, open: bool) -> io::Result<Door> {
        match (self, open) {
            (Door::Open(listener), false) => {
                // Out of the runtime's hands: what it knows of a socket does not survive that it stops listening.
                let listener = listener.into_std()?;
                // On Linux this ends listening and keeps the address.
                SockRef::from(&listener).shutdown(Shutdown::Read)?;
                Ok(Door::Shut(listener))
            }
            (Door::Shut(listener), true) => {
                listen(&listener, Backlog::MAXCONN)?;
                Ok(Door::Open(TcpListener::from_std(listener)?))
            }
            (door, _) => Ok(door),
        }
    }

    pub(super) async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match self {
            Door::Open(listener) => listener.accept().await,
            Door::Shut(_) => std::future::pending().await,
        }
    }
}

/// Listens at an address. A port that the system chose is bound once more by its number, while the first socket still holds it: the
/// system takes back what was not asked for by number when a socket stops listening.
pub(super) async fn bind(listen: &str) -> io::Result<TcpListener> {
    if !listen.ends_with(":0") {
        return TcpListener::bind(listen).await;
    }
    let unknown = || io::Error::new(io::ErrorKind::NotFound, "no such address");
    let any = tokio::net::lookup_host(listen).await?.next();
    let any = any.ok_or_else(unknown)?;
    let bound = |at: SocketAddr| {
        let socket = socket(at)?;
        socket.set_reuseaddr(true)?;
        socket.bind(at)?;
        io::Result::Ok(socket)
    };
    let holder = bound(any)?;
    bound(holder.local_addr()?)?.listen(BACKLOG)
}

/// Connects to the first address of `to` that answers, for a client that came from `from`.
pub(super) async fn connect(to: &str, from: IpAddr) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "no such address");
    for address in tokio::net::lookup_host(to).await? {
        match connect_to(address, from).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Within the loopback network a client's own source address is kept: the ports of one would not last for a fleet.
async fn connect_to(address: SocketAddr, from: IpAddr) -> io::Result<TcpStream> {
    let socket = socket(address)?;
    if let (IpAddr::V4(from), true) = (from.to_canonical(), address.ip().is_loopback()) {
        let is_spread = from.is_loopback() && from != Ipv4Addr::LOCALHOST && address.is_ipv4();
        if is_spread {
            // Without it, bind reserves a port for all destinations together.
            setsockopt(&socket, sockopt::IpBindAddressNoPort, &true)?;
            socket.bind(SocketAddr::from((from, 0)))?;
        }
    }
    socket.connect(address).await
}

fn socket(at: SocketAddr) -> io::Result<TcpSocket> {
    if at.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }
}

pub(super) fn reset_on_close(socket: &TcpStream) {
    // Fails only on a socket that is dead already.
    let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
}
