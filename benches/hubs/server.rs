//! A server in a process of its own that wants a certificate of every client and speaks as much MQTT as an idle hub needs.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{HandshakeKind, RootCertStore, ServerConfig};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Connections that wait to be accepted: none is to be dropped.
const BACKLOG: u32 = 8_192;
/// A packet of an idle hub is shorter.
const ROOM: usize = 256;

#[derive(Default)]
struct Counts {
    full: AtomicU64,
    resumed: AtomicU64,
}

/// Serves with the certificates in `folder` until stdin ends. Prints its port at first, and how many handshakes were full and resumed
/// at last.
pub fn serve(arguments: &[String]) {
    let [folder] = arguments else {
        panic!("--tls-server FOLDER");
    };
    rushhour::net::limits::Available::raise().expect("limits can be read");
    let acceptor = TlsAcceptor::from(Arc::new(config(Path::new(folder))));
    let counts = Arc::new(Counts::default());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let serving = Arc::clone(&counts);
    runtime.spawn(async move {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(([127, 0, 0, 1], 0).into()).expect("a port");
        let listener = socket.listen(BACKLOG).expect("it listens");
        println!("{}", listener.local_addr().expect("its address").port());
        std::io::stdout().flush().expect("somebody reads");
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(converse(stream, acceptor.clone(), Arc::clone(&serving)));
        }
    });
    // Whoever started it closes its stdin.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    println!("{} {}", of(&counts.full), of(&counts.resumed));
    std::process::exit(0);
}

fn config(folder: &Path) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(folder.join("ca.pem")).expect("an authority");
    roots.add(ca).expect("an authority");
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .expect("a verifier");
    let chain = CertificateDer::from_pem_file(folder.join("server.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(folder.join("server-key.pem")).expect("its key");
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![chain], key)
        .expect("they fit");
    // Without state: a million sessions may be taken up again.
    config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().expect("keys");
    config
}

async fn converse(stream: TcpStream, acceptor: TlsAcceptor, counts: Arc<Counts>) {
    let _ = stream.set_nodelay(true);
    let Ok(mut stream) = acceptor.accept(stream).await else {
        return;
    };
    let count = match stream.get_ref().1.handshake_kind() {
        Some(HandshakeKind::Resumed) => &counts.resumed,
        _ => &counts.full,
    };
    count.fetch_add(1, Ordering::Relaxed);
    let mut packet = [0; ROOM];
    // Idle hubs say one packet after the other, each in a record.
    while let Ok(length @ 2..) = stream.read(&mut packet).await {
        let answer: &[u8] = match (packet[0] >> 4, length) {
            (1, _) => &[0x20, 2, 0, 0],
            (8, 4..) => &[0x90, 3, packet[2], packet[3], 1],
            (12, _) => &[0xd0, 0],
            _ => return,
        };
        if stream.write_all(answer).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}
