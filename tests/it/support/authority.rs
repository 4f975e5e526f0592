//! Authorities of the tests and the certificates that they issue.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SerialNumber,
    date_time_ymd,
};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs;
use std::path::Path;

/// An authority of the test's own.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
pub struct Issued {
    pub certificate: CertificateDer<'static>,
    pub pem: String,
    pub key: KeyPair,
}

/// The years in which a certificate begins and ends to be valid.
pub const VALID: (i32, i32) = (2020, 2090);

fn params(name: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

impl Authority {
    pub fn new() -> Authority {
        Authority::named("authority of the test")
    }

    pub fn named(name: &str) -> Authority {
        let mut params = params(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        roots
    }

    /// A certificate for these host names and addresses.
    pub fn issue(&self, name: &str, names: &[&str]) -> Issued {
        self.issue_for(name, names, VALID, None)
    }

    /// The same with its years and its serial number.
    pub fn issue_for(
        &self,
        name: &str,
        names: &[&str],
        (from, to): (i32, i32),
        serial: Option<u64>,
    ) -> Issued {
        let key = KeyPair::generate().unwrap();
        let mut params = params(name, names);
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(to, 12, 31);
        params.serial_number = serial.map(SerialNumber::from);
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Issued {
            certificate: certificate.der().clone(),
            pem: certificate.pem(),
            key,
        }
    }

    /// Writes `NAME.pem` and `NAME-key.pem`.
    pub fn write(&self, folder: &Path, name: &str, names: &[&str]) {
        self.issue(name, names).write(folder, name);
    }
}

impl Issued {
    pub fn secret(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::try_from(self.key.serialize_der()).unwrap()
    }

    pub fn write(&self, folder: &Path, name: &str) {
        fs::write(folder.join(format!("{name}.pem")), &self.pem).unwrap();
        let key = folder.join(format!("{name}-key.pem"));
        fs::write(key, self.key.serialize_pem()).unwrap();
    }
}
