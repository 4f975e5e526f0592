//! How a device speaks TLS.

use super::template::Template;

/// The `tls:` of a device. Whether TLS is spoken at all is decided by the shard's scheme.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceTls {
    /// Files of the hub's own certificate chain and key (PEM); neither where the device shows none or its identities are issued.
    pub files: Option<KeyFiles>,
    /// The files of the certificate that a hub renews to.
    pub next_files: Option<KeyFiles>,
    /// The name that the server's certificate must be for (also sent as SNI); without it the host of the address.
    pub server_name: Option<Template>,
    pub resume: Resume,
    /// Versions that are offered; empty means all that we speak.
    pub versions: Vec<TlsVersion>,
    /// Protocols that are offered by ALPN, in this order; empty offers none.
    pub alpn: Vec<String>,
}

/// The `tls:` of requests: of the whole target, or of a journey or a command, which then counts alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HttpTls {
    /// Files of the certificate chain and key that are shown (PEM); in a journey with the placeholders of its identity.
    pub files: Option<KeyFiles>,
    pub resume: Resume,
    /// Versions that are offered; empty means all that we speak.
    pub versions: Vec<TlsVersion>,
}

/// A certificate chain and its key, as paths of PEM files with the placeholders of the device's identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFiles {
    pub cert: Template,
    pub key: Template,
}

/// Whether a session that was opened before may be taken up again, which saves half of the work of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resume {
    /// Every handshake is a full one.
    Never,
    /// Each hub takes up its own sessions, as devices with a flash memory do.
    #[default]
    Own,
}

/// A version of TLS that we speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    V1_2,
    V1_3,
}

impl Resume {
    /// As it stands in a file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Resume::Never => "never",
            Resume::Own => "own",
        }
    }
}

impl TlsVersion {
    /// As it stands in a file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TlsVersion::V1_2 => "1.2",
            TlsVersion::V1_3 => "1.3",
        }
    }
}

/// Whether an address, as a target file writes it, is one of TLS: `mqtts`, `wss`, `https`.
#[must_use]
pub fn is_secured(address: &str) -> bool {
    ["mqtts://", "wss://", "https://"]
        .iter()
        .any(|scheme| address.starts_with(scheme))
}

impl KeyFiles {
    /// Whether everybody shows the same.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.cert.names().next().is_none() && self.key.names().next().is_none()
    }

    fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        each(&mut self.cert);
        each(&mut self.key);
    }
}

impl HttpTls {
    pub(super) fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        self.files
            .iter_mut()
            .for_each(|files| files.each_template(each));
    }
}

impl DeviceTls {
    pub(super) fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        for files in self.files.iter_mut().chain(&mut self.next_files) {
            files.each_template(each);
        }
        self.server_name.iter_mut().for_each(each);
    }
}
