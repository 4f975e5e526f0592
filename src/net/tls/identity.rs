//! Who we are: a certificate chain and its key.

use super::provider;
use crate::event::CertificateSerial;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An identity that can't be had.
#[derive(Debug, Clone, thiserror::Error)]
pub enum IdentityError {
    #[error("{path}: {why}", path = .path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error("{path}: the file holds no certificate", path = .path.display())]
    NoCertificate { path: PathBuf },
    #[error("the key {key} does not fit the certificate {cert}: {why}", key = .key.display(), cert = .cert.display())]
    NoMatch {
        cert: PathBuf,
        key: PathBuf,
        why: String,
    },
    #[error("can't use the certificate: {0}")]
    Unusable(String),
}

/// A certificate chain with its key. Copies share them; the key is in no output.
#[derive(Debug, Clone)]
pub struct Identity {
    pub(super) key: Arc<CertifiedKey>,
    serial: CertificateSerial,
}

impl Identity {
    /// That of two PEM files.
    ///
    /// # Errors
    /// If a file can't be read or they don't belong together.
    pub fn of_files(cert: &Path, key: &Path) -> Result<Identity, IdentityError> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert)
            .and_then(Iterator::collect)
            .map_err(|error| unreadable(cert, error))?;
        if chain.is_empty() {
            return Err(IdentityError::NoCertificate {
                path: cert.to_owned(),
            });
        }
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, error))?;
        Identity::of_der(chain, secret).map_err(|error| IdentityError::NoMatch {
            cert: cert.to_owned(),
            key: key.to_owned(),
            why: error.to_string(),
        })
    }

    /// That of a chain, the own certificate first, and its key.
    ///
    /// # Errors
    /// If they don't belong together, or can't be used.
    pub fn of_der(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Identity, IdentityError> {
        let unusable = |why: &dyn std::fmt::Display| IdentityError::Unusable(why.to_string());
        let serial = chain
            .first()
            .and_then(|certificate| serial_of(certificate))
            .ok_or_else(|| unusable(&"it has no serial number of at most 20 bytes"))?;
        let key =
            CertifiedKey::from_der(chain, key, &provider()).map_err(|error| unusable(&error))?;
        Ok(Identity {
            key: Arc::new(key),
            serial,
        })
    }

    /// The serial number of its certificate.
    #[must_use]
    pub fn serial(&self) -> CertificateSerial {
        self.serial
    }
}

/// The serial number of a certificate; `None` if it is no certificate.
pub(super) fn serial_of(certificate: &CertificateDer<'_>) -> Option<CertificateSerial> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    CertificateSerial::from_bytes(parsed.raw_serial())
}

fn unreadable(path: &Path, error: pem::Error) -> IdentityError {
    let why = match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => "the file holds nothing of this kind in PEM".to_owned(),
        other => other.to_string(),
    };
    IdentityError::Unreadable {
        path: path.to_owned(),
        why,
    }
}
