//! Certificates of our own: made once, whoever comes first.

use crate::support::program::Home;
use rushhour::net::state::StateDirectory;
use rushhour::net::tls::{Authority, Identity, Terms, Trust};
use rushhour::plan::tls::DeviceTls;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;
use x509_parser::parse_x509_certificate;

const ROWS: usize = 200;
const VALID: Duration = Duration::from_secs(3600);

/// The public key in the certificate that is shown.
fn public_key(identity: &Identity, ca: &std::path::Path) -> Vec<u8> {
    let terms = Terms::of(&DeviceTls::default(), &Trust::of_file(ca).unwrap()).unwrap();
    let config = terms.credentials(Some(identity)).config();
    let shown = config.client_auth_cert_resolver.resolve(&[], &[]).unwrap();
    let (_, parsed) = parse_x509_certificate(&shown.cert[0]).unwrap();
    parsed.public_key().raw.to_vec()
}

/// Runs that start at the same time, none of which finds anything, agree on one authority and one key for each row; what is kept is
/// for the user alone.
#[test]
fn runs_that_start_at_once_make_keys_once() {
    let home = Home::new();
    let state = StateDirectory::under(home.path()).unwrap();
    let subjects: Vec<String> = (0..ROWS).map(|row| format!("hub-{row}")).collect();
    let issue = |rows: usize| {
        let authority = Authority::open("fleet", None, &state, 7, VALID).unwrap();
        authority.issue_all(0, &subjects[..rows]).unwrap()
    };
    let issued: Vec<Vec<Identity>> = thread::scope(|threads| {
        // Some want more rows than others, so that each may have to add to what another one has kept.
        let rows = [ROWS / 2, ROWS, ROWS / 4, ROWS];
        let running = rows.map(|rows| threads.spawn(move || issue(rows)));
        running.map(|thread| thread.join().unwrap()).into()
    });
    let folder = state.identities("fleet").unwrap();
    let keys = fs::read_to_string(folder.join("keys.pem")).unwrap();
    assert_eq!(keys.matches("BEGIN PRIVATE KEY").count(), ROWS);
    let kept = issue(ROWS);
    for row in (0..ROWS).step_by(20) {
        let key = public_key(&kept[row], &folder.join("ca.pem"));
        for one in issued.iter().filter_map(|issued| issued.get(row)) {
            assert_eq!(public_key(one, &folder.join("ca.pem")), key, "row {row}");
            assert_eq!(one.serial(), kept[row].serial(), "row {row}");
        }
    }
    for name in ["keys.pem", "ca.key"] {
        let mode = fs::metadata(folder.join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}
