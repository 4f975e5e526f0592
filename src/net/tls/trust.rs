//! Whom we trust: the authorities that vouch for the target's servers; and what requests show to them.

use super::identity::{Identity, IdentityError};
use super::provider;
use super::terms::HttpTerms;
use crate::plan::tls::HttpTls;
use crate::plan::{Target, Template};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Authorities that can't be had.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TrustError {
    #[error("`trust: {path}`: {why}", path = .path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error("`trust: {path}`: the file holds no certificate; give the authority's in PEM", path = .path.display())]
    Empty { path: PathBuf },
    #[error(
        "this system knows no certificate authorities{why}; name the target's with `trust: pki/ca.pem`"
    )]
    NoSystem { why: String },
    #[error("can't set up TLS: {0}")]
    Setup(String),
    #[error("the certificate that requests show: {0}")]
    Identity(#[from] IdentityError),
}

/// The authorities of a target. Copies share them.
#[derive(Debug, Clone)]
pub struct Trust {
    verifier: Arc<WebPkiServerVerifier>,
}

impl Trust {
    /// Those of a PEM file.
    ///
    /// # Errors
    /// If it can't be read or holds no certificate of an authority.
    pub fn of_file(path: &Path) -> Result<Trust, TrustError> {
        let unreadable = |why: String| TrustError::Unreadable {
            path: path.to_owned(),
            why,
        };
        let mut roots = RootCertStore::empty();
        let certificates = CertificateDer::pem_file_iter(path).map_err(|error| match error {
            pem::Error::Io(error) => unreadable(error.to_string()),
            other => unreadable(other.to_string()),
        })?;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
            roots
                .add(certificate)
                .map_err(|error| unreadable(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(TrustError::Empty {
                path: path.to_owned(),
            });
        }
        Trust::of_roots(roots)
    }

    /// Those of the system.
    ///
    /// # Errors
    /// If it has none.
    pub fn of_system() -> Result<Trust, TrustError> {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            let why = found.errors.first();
            return Err(TrustError::NoSystem {
                why: why.map_or_else(String::new, |error| format!(" ({error})")),
            });
        }
        Trust::of_roots(roots)
    }

    fn of_roots(roots: RootCertStore) -> Result<Trust, TrustError> {
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
            .build()
            .map_err(|error| TrustError::Setup(error.to_string()))?;
        Ok(Trust { verifier })
    }

    pub(super) fn verifier(&self) -> Arc<dyn ServerCertVerifier> {
        Arc::<WebPkiServerVerifier>::clone(&self.verifier)
    }
}

/// The authorities of a target file, read when somebody first needs them: a target without TLS needs none.
#[derive(Debug)]
pub struct TrustStore {
    /// `None`: the system's.
    file: Option<PathBuf>,
    trust: OnceLock<Result<Trust, TrustError>>,
    /// How requests speak TLS, unless something else is said.
    tls: HttpTls,
    /// The certificate that they show, read when it is first needed.
    shown: OnceLock<Result<Option<Identity>, IdentityError>>,
}

impl TrustStore {
    /// That of a target whose `<lab.…>` are text by now.
    #[must_use]
    pub fn of(target: &Target) -> TrustStore {
        TrustStore {
            file: target.trust.as_ref().map(path),
            trust: OnceLock::new(),
            tls: target.tls.clone(),
            shown: OnceLock::new(),
        }
    }

    /// The authorities.
    ///
    /// # Errors
    /// If they can't be had.
    pub fn trust(&self) -> Result<Trust, TrustError> {
        self.trust
            .get_or_init(|| match &self.file {
                Some(file) => Trust::of_file(file),
                None => Trust::of_system(),
            })
            .clone()
    }

    /// How requests speak TLS: as the whole target says, or like `own`, which then counts alone.
    ///
    /// # Errors
    /// If authorities or certificate can't be had.
    pub fn for_http(
        &self,
        own: Option<(&HttpTls, Option<&Identity>)>,
    ) -> Result<HttpTerms, TrustError> {
        let trust = self.trust()?;
        if let Some((tls, identity)) = own {
            return HttpTerms::of(tls, identity, &trust);
        }
        let shown = self.shown.get_or_init(|| {
            let files = self.tls.files.as_ref();
            files
                .map(|files| Identity::of_files(&path(&files.cert), &path(&files.key)))
                .transpose()
        });
        HttpTerms::of(&self.tls, shown.clone()?.as_ref(), &trust)
    }
}

fn path(template: &Template) -> PathBuf {
    PathBuf::from(template.to_string())
}
