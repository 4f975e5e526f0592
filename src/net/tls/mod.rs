//! TLS as every part of the tool speaks it.
//!
//! Decides whom we trust, who we are and what went wrong when TLS does not come about. Knows neither agents nor what is said
//! over the connection.

mod authority;
mod identity;
mod terms;
mod trouble;
mod trust;
mod wallet;

pub use authority::{Authority, AuthorityError};
pub use identity::{Identity, IdentityError};
pub use terms::{Credentials, HttpTerms, Lacked, Session, Terms};
pub use trouble::{explain, trouble, without_a_certificate};
pub use trust::{Trust, TrustError, TrustStore};
pub use wallet::{Holders, Owner, Wallet, WalletError, read_all};

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use std::sync::Arc;

/// Makes the one provider of cryptography that of the whole process. A second call changes nothing.
pub fn install_provider() {
    // Somebody was first: it is the same one.
    let _ = aws_lc_rs::default_provider().install_default();
}

/// The process's provider.
fn provider() -> Arc<CryptoProvider> {
    install_provider();
    CryptoProvider::get_default()
        .cloned()
        .unwrap_or_else(|| Arc::new(aws_lc_rs::default_provider()))
}
