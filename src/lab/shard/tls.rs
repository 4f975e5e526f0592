//! TLS on a shard's side: who it is, whom it asks for a certificate, and what a handshake that failed failed of.

use crate::lab::messages::{Client, TlsTrouble};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::server::WebPkiClientVerifier;
use rustls::{CertificateError, Error, HandshakeKind, RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// The files that a shard with TLS reads, all PEM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The authority whose certificates clients must show; without it they need none.
    pub clients_of: Option<PathBuf>,
}

/// Why a shard can't speak TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("can't read {}: {source}", file.display())]
    Read { file: PathBuf, source: pem::Error },
    #[error("the shard's certificates can't be used: {0}")]
    Use(#[from] Error),
    #[error("the authority of client certificates can't be used: {0}")]
    Clients(#[from] rustls::server::VerifierBuilderError),
}

/// What takes connections with these files: TLS 1.2 and 1.3, session tickets on.
///
/// # Errors
/// If a file can't be read or used.
pub fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let builder = match &files.clients_of {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let mut roots = RootCertStore::empty();
            roots.add(certificate(file)?)?;
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|source| unread(&files.key, source))?;
    let mut config = builder.with_single_cert(vec![certificate(&files.certificate)?], key)?;
    config.ticketer = aws_lc_rs::Ticketer::new()?;
    // A hub comes back with the one that it has; more are bytes that nobody uses.
    config.send_tls13_tickets = 1;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificate(file: &Path) -> Result<CertificateDer<'static>, TlsError> {
    CertificateDer::from_pem_file(file).map_err(|source| unread(file, source))
}

fn unread(file: &Path, source: pem::Error) -> TlsError {
    TlsError::Read {
        file: file.to_owned(),
        source,
    }
}

/// What the connection tells of its client.
pub fn client(connection: &rustls::ServerConnection) -> Client {
    let version = match connection.protocol_version() {
        Some(rustls::ProtocolVersion::TLSv1_2) => "1.2",
        _ => "1.3",
    };
    Client {
        tls: Some(version.to_owned()),
        resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        certificate: connection
            .peer_certificates()
            .and_then(|chain| serial_number(chain.first()?)),
        ..Client::default()
    }
}

/// Why a handshake failed.
pub fn trouble(error: &io::Error) -> TlsTrouble {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Error>());
    match inner {
        None => TlsTrouble::Gone,
        Some(Error::NoCertificatesPresented) => TlsTrouble::NoCertificate,
        Some(Error::InvalidCertificate(why)) => match why {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                TlsTrouble::UnknownIssuer
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                TlsTrouble::Expired
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                TlsTrouble::NotYetValid
            }
            _ => TlsTrouble::BadCertificate,
        },
        Some(Error::PeerIncompatible(_)) => TlsTrouble::NothingInCommon,
        Some(Error::InvalidMessage(_) | Error::InappropriateMessage { .. }) => TlsTrouble::NoTls,
        Some(Error::AlertReceived(_)) => TlsTrouble::RefusedByClient,
        Some(_) => TlsTrouble::Other,
    }
}

/// The serial number of a certificate, in hexadecimal digits without leading zeros.
fn serial_number(der: &[u8]) -> Option<String> {
    let (_, certificate, _) = element(der)?;
    let (_, mut fields, _) = element(certificate)?;
    // Before the serial number stands the version, unless it is the first one.
    if fields.first() == Some(&0xa0) {
        (_, _, fields) = element(fields)?;
    }
    let (kind, number, _) = element(fields)?;
    if kind != 0x02 {
        return None;
    }
    let digits: String = number.iter().map(|byte| format!("{byte:02x}")).collect();
    let digits = digits.trim_start_matches('0');
    Some(if digits.is_empty() { "0" } else { digits }.to_owned())
}

/// The kind and the content of the first DER element, and what comes after it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&kind, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if bytes.len() > 4 {
            return None;
        }
        let length = bytes
            .iter()
            .fold(0, |length, byte| length << 8 | usize::from(*byte));
        (length, rest)
    };
    let (content, after) = rest.split_at_checked(length)?;
    Some((kind, content, after))
}
