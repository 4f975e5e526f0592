//! The lab's own certificate authority, for as long as the lab runs: whom shards prove themselves by, and whose client
//! certificates they take.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The files of an authority that was made.
pub struct Pki {
    /// The authority's certificate.
    pub authority: PathBuf,
    /// The shards' certificate and its key.
    pub server: PathBuf,
    pub server_key: PathBuf,
}

/// Why there is no authority.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    #[error("can't make the lab's certificates: {0}")]
    Make(#[from] rcgen::Error),
    #[error("can't write {}: {source}", file.display())]
    Write { file: PathBuf, source: io::Error },
}

/// `DIR/pki`.
pub fn folder(dir: &Path) -> PathBuf {
    dir.join("pki")
}

impl Pki {
    /// Makes an authority and a certificate for `127.0.0.1` and `localhost`, all of it anew.
    ///
    /// `ca.pem` and `ca-key.pem` (mode 0600) are there for whoever issues client certificates.
    ///
    /// # Errors
    /// If the folder can't be written to, or the system has no randomness.
    pub fn create(dir: &Path) -> Result<Pki, PkiError> {
        let folder = folder(dir);
        fs::create_dir_all(&folder).map_err(|source| PkiError::Write {
            file: folder.clone(),
            source,
        })?;
        let authority = CertifiedIssuer::self_signed(authority(), KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let server = server()?.signed_by(&key, &authority)?;
        let write = |name: &str, mode: u32, text: String| {
            let file = folder.join(name);
            written(&file, mode, &text).map_err(|source| PkiError::Write {
                file: file.clone(),
                source,
            })?;
            Ok::<PathBuf, PkiError>(file)
        };
        write("ca-key.pem", 0o600, authority.key().serialize_pem())?;
        Ok(Pki {
            authority: write("ca.pem", 0o644, authority.pem())?,
            server: write("server.pem", 0o644, server.pem())?,
            server_key: write("server-key.pem", 0o600, key.serialize_pem())?,
        })
    }
}

fn authority() -> CertificateParams {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "rushhour lab authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn server() -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    params
        .distinguished_name
        .push(DnType::CommonName, "rushhour lab shard");
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

/// Writes a file that has its mode from its first byte on.
fn written(file: &Path, mode: u32, text: &str) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(file)?
        .write_all(text.as_bytes())
}
