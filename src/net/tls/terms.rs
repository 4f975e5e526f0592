//! How a device's hubs speak TLS: versions, protocols, resumption, and the certificate that each shows.

use super::identity::{Identity, serial_of};
use super::provider;
use super::trust::{Trust, TrustError};
use crate::event::CertificateSerial;
use crate::plan::tls::{DeviceTls, HttpTls, Resume, TlsVersion};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::sign::CertifiedKey;
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, RootCertStore, SignatureScheme,
    SupportedProtocolVersion, version,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The only HTTP that we speak, as ALPN names it.
const HTTP: &str = "http/1.1";

/// What all hubs of a device have in common.
#[derive(Debug)]
pub struct Terms {
    template: ClientConfig,
    resume: Resume,
    /// For hubs that show no certificate and resume nothing: one for all.
    plain: Arc<ClientConfig>,
    lacked: Lacked,
}

/// How requests speak TLS.
#[derive(Debug, Clone)]
pub struct HttpTerms {
    pub config: ClientConfig,
    pub lacked: Lacked,
}

/// Whether a peer has asked for a certificate that nobody had. Copies know it of each other.
#[derive(Debug, Clone, Default)]
pub struct Lacked(Arc<AtomicBool>);

/// What one hub brings to its handshakes: its certificate and its store of sessions.
#[derive(Debug, Clone)]
pub struct Credentials {
    config: Arc<ClientConfig>,
    serial: Option<CertificateSerial>,
}

/// A TLS session that stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// It took up an earlier one.
    pub resumed: bool,
    /// Of the certificate that we have to show.
    pub own: Option<CertificateSerial>,
    pub peer: Option<CertificateSerial>,
}

impl Terms {
    /// Those of a device, towards servers that `trust` vouches for.
    ///
    /// # Errors
    /// If the provider of cryptography does not have what is asked for.
    pub fn of(tls: &DeviceTls, trust: &Trust) -> Result<Terms, TrustError> {
        let versions: Vec<&'static SupportedProtocolVersion> = if tls.versions.is_empty() {
            vec![&version::TLS13, &version::TLS12]
        } else {
            tls.versions
                .iter()
                .map(|version| supported(*version))
                .collect()
        };
        let lacked = Lacked::default();
        let verifier: Arc<dyn ServerCertVerifier> = trust.verifier();
        let mut template = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&versions)
            .map_err(|error| TrustError::Setup(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_cert_resolver(Arc::new(Nobody {
                lacked: lacked.clone(),
            }));
        template.alpn_protocols = tls
            .alpn
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        template.resumption = Resumption::disabled();
        Ok(Terms {
            plain: Arc::new(template.clone()),
            template,
            resume: tls.resume,
            lacked,
        })
    }

    /// What a hub with this certificate brings. Its store of sessions is new, so its next handshake is a full one.
    #[must_use]
    pub fn credentials(&self, identity: Option<&Identity>) -> Credentials {
        let serial = identity.map(Identity::serial);
        if identity.is_none() && self.resume == Resume::Never {
            return Credentials {
                config: Arc::clone(&self.plain),
                serial,
            };
        }
        let mut config = self.template.clone();
        if let Some(identity) = identity {
            config.client_auth_cert_resolver = Arc::new(Shown(Arc::clone(&identity.key)));
        }
        if self.resume == Resume::Own {
            config.resumption = Resumption::in_memory_sessions(1);
        }
        Credentials {
            config: Arc::new(config),
            serial,
        }
    }

    /// Whether a peer has asked for a certificate that the hub did not have.
    #[must_use]
    pub fn lacked_a_certificate(&self) -> bool {
        self.lacked.is_so()
    }
}

impl HttpTerms {
    /// Those of clients that show `identity` and take up each other's sessions, if they may.
    pub(super) fn of(
        tls: &HttpTls,
        identity: Option<&Identity>,
        trust: &Trust,
    ) -> Result<HttpTerms, TrustError> {
        let terms = DeviceTls {
            resume: tls.resume,
            versions: tls.versions.clone(),
            alpn: vec![HTTP.to_owned()],
            ..DeviceTls::default()
        };
        let terms = Terms::of(&terms, trust)?;
        let mut config = ClientConfig::clone(&terms.credentials(identity).config);
        if tls.resume == Resume::Own {
            // One client asks several servers.
            config.resumption = Resumption::default();
        }
        Ok(HttpTerms {
            config,
            lacked: terms.lacked,
        })
    }

    /// Where nothing is spoken over TLS, nobody is trusted.
    pub(in crate::net) fn of_nobody() -> Result<HttpTerms, TrustError> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| TrustError::Setup(error.to_string()))?;
        let builder = builder.with_root_certificates(RootCertStore::empty());
        Ok(HttpTerms {
            config: builder.with_no_client_auth(),
            lacked: Lacked::default(),
        })
    }
}

impl Lacked {
    #[must_use]
    pub fn is_so(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Credentials {
    /// For [`Stream::secure`](crate::net::stream::Stream::secure).
    #[must_use]
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// The serial number of the certificate, if there is one.
    #[must_use]
    pub fn serial(&self) -> Option<CertificateSerial> {
        self.serial
    }

    /// What is to be told of a session that was opened with these.
    #[must_use]
    pub fn session(&self, connection: &ClientConnection) -> Session {
        let peer = connection.peer_certificates().and_then(<[_]>::first);
        Session {
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            own: self.serial,
            peer: peer.and_then(serial_of),
        }
    }
}

fn supported(version: TlsVersion) -> &'static SupportedProtocolVersion {
    match version {
        TlsVersion::V1_2 => &version::TLS12,
        TlsVersion::V1_3 => &version::TLS13,
    }
}

/// Shows one certificate to whoever asks.
#[derive(Debug)]
struct Shown(Arc<CertifiedKey>);

impl ResolvesClientCert for Shown {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Has no certificate, and remembers that one was asked for.
#[derive(Debug)]
struct Nobody {
    lacked: Lacked,
}

impl ResolvesClientCert for Nobody {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.lacked.0.store(true, Ordering::Relaxed);
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}
