//! An authority of our own: certificates for every hub, issued before the load.
//!
//! Decides what a certificate says. Keys are random and stay in the user's state directory; serial numbers come from the seed.

use super::identity::{Identity, IdentityError};
use crate::dice::Dice;
use crate::net::state::{self, StateDirectory, StateError};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SerialNumber,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::{available_parallelism, scope};
use std::time::Duration;
use time::OffsetDateTime;

/// An authority that is made lives this long.
const AUTHORITY_LIVES: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// Clocks of target and tool may differ by this much.
const CLOCKS_DIFFER: Duration = Duration::from_secs(300);
/// Keeps these draws apart from others of the seed: "cert" in ASCII.
const SERIALS: u64 = 0x6365_7274;
/// Where the authority of a set that names none lies in its directory of the state directory.
const OWN_CERTIFICATE: &str = "ca.pem";
const OWN_KEY: &str = "ca.key";

/// An authority that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(
        "{there} is there and {missing} is not: give both files of the authority, or none and it is made",
        there = .there.display(), missing = .missing.display()
    )]
    Half { there: PathBuf, missing: PathBuf },
    #[error("{path}: {why}", path = .path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error("can't issue a certificate: {0}")]
    Issue(#[from] rcgen::Error),
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

/// An authority and the keys of the hubs that it vouches for.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// What a hub shows beside its own certificate: authorities between it and the root.
    between: Vec<CertificateDer<'static>>,
    keys_file: PathBuf,
    state: StateDirectory,
    seed: u64,
    valid: Duration,
}

impl Authority {
    /// The authority of two PEM files, which are made if both are missing; `None` is one of the state directory. `name` is that of
    /// the set of identities.
    ///
    /// # Errors
    /// If the files can't be read, written or used.
    pub fn open(
        name: &str,
        files: Option<(&Path, &Path)>,
        state: &StateDirectory,
        seed: u64,
        valid: Duration,
    ) -> Result<Authority, AuthorityError> {
        let directory = state.identities(name)?;
        let lock = state.lock_identities()?;
        let own = (directory.join(OWN_CERTIFICATE), directory.join(OWN_KEY));
        let (cert, key) = files.unwrap_or((&own.0, &own.1));
        match (cert.exists(), key.exists()) {
            (true, true) => {}
            (false, false) => make(name, cert, key)?,
            (is_there, _) => {
                let (there, missing) = if is_there { (cert, key) } else { (key, cert) };
                return Err(AuthorityError::Half {
                    there: there.to_owned(),
                    missing: missing.to_owned(),
                });
            }
        }
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert)
            .and_then(Iterator::collect)
            .map_err(|error| unreadable(cert, error))?;
        let authority = chain
            .first()
            .ok_or_else(|| unreadable(cert, "the file holds no certificate"))?;
        let text = fs::read_to_string(key).map_err(|error| unreadable(key, error))?;
        drop(lock);
        let secret = KeyPair::from_pem(&text).map_err(|error| unreadable(key, error))?;
        let issuer =
            Issuer::from_ca_cert_der(authority, secret).map_err(|error| unreadable(cert, error))?;
        // A root is known to whoever trusts it.
        let between = chain
            .iter()
            .filter(|cert| !is_root(cert))
            .cloned()
            .collect();
        Ok(Authority {
            issuer,
            between,
            keys_file: directory.join("keys.pem"),
            state: state.clone(),
            seed,
            valid,
        })
    }

    /// Certificates for `subjects`, the n-th for row `first + n` of the set, on all processors. Keys of rows that had one before
    /// are taken again.
    ///
    /// # Errors
    /// If the keys can't be kept or a certificate can't be issued.
    pub fn issue_all(
        &self,
        first: usize,
        subjects: &[String],
    ) -> Result<Vec<Identity>, AuthorityError> {
        let keys = self.keys(first + subjects.len())?;
        let rows: Vec<(usize, &String, &KeyPair)> = subjects
            .iter()
            .enumerate()
            .zip(keys.iter().skip(first))
            .map(|((n, subject), key)| (first + n, subject, key))
            .collect();
        on_all_processors(&rows, |(row, subject, key)| {
            self.sign(subject, *row, 0, key)
        })
    }

    /// A new certificate with a new key for `row` of the set: the `generation`-th after the first.
    ///
    /// # Errors
    /// If it can't be issued.
    pub fn renew(
        &self,
        subject: &str,
        row: usize,
        generation: u32,
    ) -> Result<Identity, AuthorityError> {
        self.sign(subject, row, generation, &KeyPair::generate()?)
    }

    fn sign(
        &self,
        subject: &str,
        row: usize,
        generation: u32,
        key: &KeyPair,
    ) -> Result<Identity, AuthorityError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, subject);
        let serial = serial(self.seed, row, generation);
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        let now = OffsetDateTime::now_utc();
        params.not_before = now - CLOCKS_DIFFER;
        params.not_after = now + self.valid;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let signed = params.signed_by(key, &self.issuer)?;
        let secret = PrivatePkcs8KeyDer::from(key.serialize_der());
        let mut chain = vec![signed.der().clone()];
        chain.extend(self.between.iter().cloned());
        Ok(Identity::of_der(chain, secret.into())?)
    }

    /// The keys of the first `count` rows; those that are missing are made and kept.
    fn keys(&self, count: usize) -> Result<Vec<KeyPair>, AuthorityError> {
        // Another run may want the same keys now: who comes second finds them made.
        let _held = self.state.lock_identities()?;
        let text = match state::read_private(&self.keys_file) {
            Ok(text) => text,
            Err(StateError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                String::new()
            }
            Err(error) => return Err(error.into()),
        };
        let blocks: Vec<String> = text
            .split_inclusive("-----END PRIVATE KEY-----\n")
            .filter(|block| !block.trim().is_empty())
            .map(str::to_owned)
            .collect();
        let bad = |error: rcgen::Error| unreadable(&self.keys_file, format!("{error}; remove it"));
        let mut keys = on_all_processors(&blocks, |block| KeyPair::from_pem(block).map_err(bad))?;
        if keys.len() < count {
            let missing: Vec<()> = vec![(); count - keys.len()];
            keys.extend(on_all_processors(&missing, |()| {
                KeyPair::generate().map_err(AuthorityError::from)
            })?);
            let whole: String = keys
                .iter()
                .map(|key| key.serialize_pem().replace("\r\n", "\n"))
                .collect();
            state::write_private(&self.keys_file, &whole)?;
        }
        Ok(keys)
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "Authority with keys in {}",
            self.keys_file.display()
        )
    }
}

/// 16 bytes from the seed; the first is neither 0 nor negative.
fn serial(seed: u64, row: usize, generation: u32) -> [u8; 16] {
    let nth = (row as u64) << 16 | u64::from(generation & 0xffff);
    let mut dice = Dice::named(seed, SERIALS, nth);
    let mut bytes = [0; 16];
    for byte in &mut bytes {
        *byte = u8::try_from(dice.below(256)).unwrap_or_default();
    }
    bytes[0] = bytes[0] & 0x3f | 0x40;
    bytes
}

/// Makes an authority and writes both its files, the key for the user alone.
fn make(name: &str, cert: &Path, key: &Path) -> Result<(), AuthorityError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let subject = format!("rushhour authority of {name}");
    params.distinguished_name.push(DnType::CommonName, subject);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let now = OffsetDateTime::now_utc();
    params.not_before = now - CLOCKS_DIFFER;
    params.not_after = now + AUTHORITY_LIVES;
    let secret = KeyPair::generate()?;
    let made = params.self_signed(&secret)?;
    for directory in [cert.parent(), key.parent()].into_iter().flatten() {
        fs::create_dir_all(directory).map_err(|error| unreadable(directory, error))?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let write = |options: &OpenOptions, path: &Path, text: String| {
        let mut file = options.open(path)?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
    };
    let secret = secret.serialize_pem();
    write(options.clone().mode(0o600), key, secret).map_err(|error| unreadable(key, error))?;
    write(&options, cert, made.pem()).map_err(|error| unreadable(cert, error))
}

fn is_root(certificate: &CertificateDer<'_>) -> bool {
    x509_parser::parse_x509_certificate(certificate)
        .is_ok_and(|(_, parsed)| parsed.subject() == parsed.issuer())
}

fn unreadable(path: &Path, why: impl std::fmt::Display) -> AuthorityError {
    AuthorityError::Unreadable {
        path: path.to_owned(),
        why: why.to_string(),
    }
}

/// Does the same to every item, in order; the first error ends it.
pub(super) fn on_all_processors<T: Sync, R: Send, E: Send>(
    items: &[T],
    each: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let threads = available_parallelism().map_or(1, usize::from);
    let part = items.len().div_ceil(threads).max(1);
    let mut done = Vec::with_capacity(items.len());
    scope(|threads| {
        let running: Vec<_> = items
            .chunks(part)
            .map(|part| threads.spawn(|| part.iter().map(&each).collect::<Result<Vec<R>, E>>()))
            .collect();
        for thread in running {
            let result = thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            done.extend(result?);
        }
        Ok(done)
    })
}
