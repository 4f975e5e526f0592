//! What is wrong when TLS does not come about.

use crate::event::TlsTrouble;
use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};

/// The class of an error of TLS; `None` if what the peer sent is no TLS at all, or breaks it.
#[must_use]
pub fn trouble(error: &Error) -> Option<TlsTrouble> {
    match error {
        Error::InvalidCertificate(error) => Some(of_certificate(error)),
        Error::NoCertificatesPresented => Some(TlsTrouble::Untrusted),
        Error::AlertReceived(alert) => of_alert(*alert),
        Error::PeerIncompatible(
            PeerIncompatible::ServerSentHelloRetryRequestWithUnknownExtension,
        ) => None,
        Error::PeerIncompatible(_) => Some(TlsTrouble::Version),
        Error::NoApplicationProtocol => Some(TlsTrouble::Refused),
        _ => None,
    }
}

fn of_certificate(error: &CertificateError) -> TlsTrouble {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsTrouble::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            TlsTrouble::NotYetValid
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            TlsTrouble::WrongName
        }
        _ => TlsTrouble::Untrusted,
    }
}

/// What the peer means by an alert.
fn of_alert(alert: AlertDescription) -> Option<TlsTrouble> {
    match alert {
        AlertDescription::CertificateRequired | AlertDescription::NoCertificate => {
            Some(TlsTrouble::ClientCertificateRequired)
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied
        | AlertDescription::DecryptError
        | AlertDescription::HandshakeFailure
        | AlertDescription::UnrecognisedName
        | AlertDescription::NoApplicationProtocol => Some(TlsTrouble::Refused),
        AlertDescription::ProtocolVersion | AlertDescription::InsufficientSecurity => {
            Some(TlsTrouble::Version)
        }
        _ => None,
    }
}
