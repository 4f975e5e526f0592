//! Shards with TLS: whom they let in, what they count, which certificates they have seen.

use super::hub::until;
use super::raw::{Raw, authority, connect, connect_v4};
use crate::support::lab::Lab;
use rcgen::{
    CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, SerialNumber,
    date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

const WELCOME: [u8; 4] = [0x20, 0x02, 0x00, 0x00];

/// Issues client certificates.
struct Authority(Issuer<'static, KeyPair>);

impl Authority {
    /// The lab's own.
    fn of(lab: &Lab) -> Authority {
        let key = std::fs::read_to_string(format!("{}/pki/ca-key.pem", lab.says("dir"))).unwrap();
        Authority::with(KeyPair::from_pem(&key).unwrap())
    }

    fn with(key: KeyPair) -> Authority {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "rushhour lab authority");
        Authority(Issuer::new(params, key))
    }

    /// A certificate with this serial number that ends with this year.
    fn issue(
        &self,
        serial: u64,
        last_year: i32,
    ) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "a hub");
        params.serial_number = Some(SerialNumber::from(serial));
        params.not_after = date_time_ymd(last_year, 12, 31);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        (certificate.der().clone(), key)
    }
}

fn client(
    lab: &Lab,
    identity: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(authority(lab)).unwrap();
    trusting(roots, identity)
}

fn trusting(
    roots: RootCertStore,
    identity: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
) -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    Arc::new(match identity {
        Some((certificate, key)) => builder
            .with_client_auth_cert(vec![certificate], key)
            .unwrap(),
        None => builder.with_no_client_auth(),
    })
}

/// Connects as a hub; gives the connection if the shard let it in.
async fn admitted(
    lab: &Lab,
    shard: &str,
    id: &str,
    config: &Arc<ClientConfig>,
) -> Option<(Raw, Vec<u8>)> {
    let mut raw = Raw::tls(lab, shard, config).await.ok()?;
    raw.send(&connect_v4(id)).await;
    let answer = raw.packet().await?;
    Some((raw, answer))
}

#[tokio::test]
async fn hubs_come_by_tls_and_resume_and_who_does_not_speak_it_is_counted_by_reason() {
    let lab = Lab::start(&["--tls", "server"]);
    let config = client(&lab, None);
    for _ in 0..2 {
        let (_, answer) = admitted(&lab, "shard-1", "h", &config).await.unwrap();
        assert_eq!(answer, WELCOME);
    }
    let mut plain = Raw::plain(&lab, "shard-1").await;
    plain.send(&connect_v4("plain")).await;
    while plain.packet().await.is_some_and(|alert| alert[0] != 0x20) {}
    let stranger = trusting(RootCertStore::empty(), None);
    assert!(Raw::tls(&lab, "shard-1", &stranger).await.is_err());
    let stats = until(
        async || lab.stats().await["shards"]["shard-1"]["handshakes"].clone(),
        |counts| counts["failed"]["refused-by-client"] == 1 && counts["failed"]["no-tls"] == 1,
    )
    .await;
    assert_eq!((&stats["full"], &stats["resumed"]), (&1.into(), &1.into()));
    let metrics = lab.metrics().await;
    for line in [
        "lab_tls_handshakes_total{shard=\"shard-1\",kind=\"full\"} 1",
        "lab_tls_handshakes_total{shard=\"shard-1\",kind=\"resumed\"} 1",
        "lab_tls_failed_handshakes_total{shard=\"shard-1\",reason=\"no-tls\"} 1",
        "lab_client_certificates 0",
    ] {
        assert!(metrics.contains(line), "no {line} in\n{metrics}");
    }
}

#[tokio::test]
async fn mutual_tls_lets_in_whom_the_authority_knows_and_says_which_certificate_each_has() {
    let lab = Lab::start(&["--tls", "mutual"]);
    let ours = Authority::of(&lab);
    let theirs = Authority::with(KeyPair::generate().unwrap());
    let mut hubs = Vec::new();
    for (id, serial) in [("h-1", 0x0102), ("h-2", 0xfeed), ("h-3", 0xfeed)] {
        let config = client(&lab, Some(ours.issue(serial, 4000)));
        let (hub, answer) = admitted(&lab, "shard-1", id, &config).await.unwrap();
        assert_eq!(answer, WELCOME);
        hubs.push(hub);
    }
    for (identity, reason) in [
        (None, "no-certificate"),
        (Some(ours.issue(7, 2001)), "expired"),
        (Some(theirs.issue(8, 4000)), "unknown-issuer"),
    ] {
        let config = client(&lab, identity);
        assert!(
            admitted(&lab, "shard-2", "no", &config).await.is_none(),
            "{reason}"
        );
        let read = async || lab.stats().await["shards"]["shard-2"]["handshakes"]["failed"].clone();
        until(read, |failed| failed[reason] == 1).await;
    }
    let (status, page) = lab.get("/admin/sessions?limit=2").await;
    assert_eq!((status, &page["next"]), (200, &"h-2".into()));
    assert_eq!(page["sessions"][0]["certificate"], "102");
    assert_eq!(page["sessions"][0]["tls"], "1.3");
    let (_, page) = lab
        .get("/admin/sessions?limit=2&after=h-2&shard=shard-1")
        .await;
    assert_eq!(page["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(page["sessions"][0]["certificate"], "feed");
    assert!(page["next"].is_null(), "{page}");
    assert!(lab.metrics().await.contains("lab_client_certificates 2"));
}

#[tokio::test]
async fn a_resumed_session_still_says_with_which_certificate_it_began() {
    let lab = Lab::start(&["--tls", "mutual"]);
    let config = client(&lab, Some(Authority::of(&lab).issue(0xabc, 4000)));
    for resumed in [false, true] {
        let (_hub, _) = admitted(&lab, "shard-1", "h", &config).await.unwrap();
        let page = until(
            async || lab.get("/admin/sessions").await.1["sessions"][0].clone(),
            |session| session["resumed"] == resumed,
        )
        .await;
        assert_eq!(page["certificate"], "abc");
    }
}

#[tokio::test]
async fn the_authority_is_for_its_owner_alone_and_ends_with_the_lab() {
    let lab = Lab::start(&["--tls", "mutual"]);
    let folder = std::path::Path::new(lab.says("dir")).join("pki");
    for (file, mode) in [
        ("ca.pem", 0o644),
        ("ca-key.pem", 0o600),
        ("server-key.pem", 0o600),
    ] {
        let found = folder.join(file).metadata().unwrap().permissions().mode();
        // The process's umask may take rights away, never add any.
        assert_eq!(found & 0o777 & !mode, 0, "{file}: {found:o}");
    }
    let (mut lab, folder) = (lab, folder);
    lab.close_stdin();
    assert_eq!(lab.wait(super::hub::LIMIT), Some(0));
    assert!(!folder.exists(), "no key stays behind");
}

#[tokio::test]
async fn a_refresh_checks_live_sessions_with_tls_and_tells_who_is_thrown_out() {
    // One connection at 50 ms a query, 20 ms of patience: no check is in time.
    let lab = Lab::start(&[
        "--tls",
        "mutual",
        "--set",
        "pool_size=1",
        "--set",
        "service_ms=50",
        "--set",
        "auth_expires_after_ms=20",
    ]);
    let authority = Authority::of(&lab);
    let mut hubs = Vec::new();
    for (number, shard) in ["shard-1", "shard-2"].into_iter().enumerate() {
        let config = client(&lab, Some(authority.issue(100 + number as u64, 4000)));
        let mut hub = Raw::tls(&lab, shard, &config).await.unwrap();
        let id = format!("h-{number}");
        hub.send(&connect(&id, 2, 30, b"", b"")).await;
        assert_eq!(hub.packet().await.unwrap()[3], 0);
        hubs.push(hub);
    }
    lab.post("/admin/operations/refresh-certificates", json!({}))
        .await;
    let read = async || lab.stats().await["counts"]["checks_from_cache"].clone();
    until(read, |checks| *checks == 4).await;
    for defect in ["auth-from-database", "slow-auth-expires-session"] {
        let path = format!("/admin/defects/{defect}");
        lab.post(&path, json!({ "on": true })).await;
    }
    lab.post("/admin/operations/refresh-certificates", json!({}))
        .await;
    for hub in &mut hubs {
        // The first thing that is heard since the CONNACK: the healthy refresh said nothing.
        assert_eq!(hub.packet().await.unwrap(), b"\xe0\x01\x87");
        assert_eq!(hub.packet().await, None);
    }
}
