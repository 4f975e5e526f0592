//! What is wrong when TLS does not come about.

use crate::event::{Outcome, TlsTrouble};
use crate::net::stream::tls_error;
use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};
use std::io;
use time::OffsetDateTime;

/// How a peer gets a certificate of us.
const GIVE_ONE: &str =
    "write `tls: { cert: …, key: … }` in the target file, or give an `identity:` with certificates";

/// What the end of a connection means to somebody who had been asked for a certificate and has none: a peer of TLS 1.2 does not say
/// that it wants one, it just refuses.
#[must_use]
pub fn without_a_certificate(outcome: Outcome, text: Option<String>) -> (Outcome, Option<String>) {
    if outcome != Outcome::Tls(TlsTrouble::Refused) {
        return (outcome, text);
    }
    let asked = |text| {
        format!("{text}; it had asked for a client certificate, and there is none: {GIVE_ONE}")
    };
    let required = Outcome::Tls(TlsTrouble::ClientCertificateRequired);
    (required, text.map(asked))
}

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

/// In words, what was wrong with `peer` or with what it said; `None` if it was not TLS.
#[must_use]
pub fn explain(error: &io::Error, peer: &str) -> Option<String> {
    let error = tls_error(error)?;
    let text = match error {
        Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. }) => {
            format!(
                "the certificate of {peer} expired on {}",
                moment(*not_after)
            )
        }
        Error::InvalidCertificate(CertificateError::NotValidYetContext { not_before, .. }) => {
            let from = moment(*not_before);
            format!("the certificate of {peer} is valid only from {from} on")
        }
        Error::InvalidCertificate(CertificateError::NotValidForNameContext {
            expected,
            presented,
        }) => {
            let presented = if presented.is_empty() {
                "no name at all".to_owned()
            } else {
                let names: Vec<&str> = presented.iter().map(|name| bare(name)).collect();
                names.join(", ")
            };
            format!(
                "the certificate of {peer} is for {presented}, not for {}; `tls: {{ server_name: … }}` says which name to expect",
                expected.to_str()
            )
        }
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            format!("no authority of `trust` vouches for the certificate of {peer}")
        }
        Error::InvalidCertificate(CertificateError::BadSignature) => {
            format!(
                "an authority of `trust` has the name of the one that issued the certificate of {peer}, and another key; is `trust` of another environment?"
            )
        }
        Error::InvalidCertificate(other) => {
            format!("the certificate of {peer} can't be trusted: {other}")
        }
        Error::AlertReceived(alert)
            if of_alert(*alert) == Some(TlsTrouble::ClientCertificateRequired) =>
        {
            format!("{peer} wants a client certificate; {GIVE_ONE}")
        }
        Error::AlertReceived(alert) => format!("{peer} refused with the alert {alert:?}"),
        other => format!("{peer}: {other}"),
    };
    Some(text)
}

/// A name of a certificate as a person writes it: the library gives `DnsName("mqtt.example")` and `IpAddress(127.0.0.1)`.
fn bare(name: &str) -> &str {
    let inner = name
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"')
}

/// `2026-11-02 14:03:07 UTC`
fn moment(at: UnixTime) -> String {
    let seconds = i64::try_from(at.as_secs()).unwrap_or(i64::MAX);
    let Ok(at) = OffsetDateTime::from_unix_timestamp(seconds) else {
        return format!("{seconds} s after 1970");
    };
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC",
        at.year(),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second()
    )
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
