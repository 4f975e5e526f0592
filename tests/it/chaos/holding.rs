//! Sessions of a pooler and of a database are taken, and others wait; and packets are dropped in a network of the test's own.

use super::components::{act, break_with, target_of};
use super::life::Run;
use super::stage::{State, state, until};
use crate::support::postgres::{by, is_root, postgres};
use crate::support::service::{free_port, listens, program};
use rushhour::plan::component::{Act, Body, Dropped};
use rushhour::plan::target::SecretSource;
use rushhour::plan::template::Template;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A PgBouncer that lends `pool_size` connections of a database by the transaction; killed when dropped.
struct PgBouncer {
    port: u16,
    child: Child,
    _folder: TempDir,
}

fn pgbouncer(database: u16, pool_size: u32) -> Option<PgBouncer> {
    let program = program("pgbouncer")?;
    let folder = TempDir::new().unwrap();
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), everybody).unwrap();
    let port = free_port();
    let file = folder.path().join("pgbouncer.ini");
    let text = format!(
        "[databases]\nlab = host=127.0.0.1 port={database} user=lab dbname=lab\n[pgbouncer]\n\
         listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
         pool_mode = transaction\ndefault_pool_size = {pool_size}\nmax_client_conn = 100\n"
    );
    std::fs::write(&file, text).unwrap();
    let owner = is_root().then_some("postgres");
    let child = by(owner, &program)
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pooler = PgBouncer {
        port,
        child,
        _folder: folder,
    };
    let address = format!("127.0.0.1:{port}").parse().unwrap();
    assert!(listens(address, Duration::from_secs(10)), "no PgBouncer");
    Some(pooler)
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a query of somebody else is answered within half a second.
async fn is_served(port: u16) -> bool {
    let address = format!("host=127.0.0.1 port={port} user=lab dbname=lab");
    let asked = async {
        let (client, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls)
            .await
            .ok()?;
        tokio::spawn(connection);
        client.simple_query("SELECT 1").await.ok()
    };
    let answer = tokio::time::timeout(Duration::from_millis(500), asked).await;
    answer.is_ok_and(|answer| answer.is_some())
}

async fn hold(database: &str, connections: u32, state: &State) -> Run {
    let mut target = target_of(Body::Database(Template::parse(database).unwrap()), None);
    // The holder reads it as whoever heals would.
    let file = state.base.path().join("address");
    let source = SecretSource::File(file);
    target.secrets.insert("database".to_owned(), source);
    break_with(&target, act(Act::Hold { connections }), state).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poolers_connections_are_held_and_let_go() {
    let (Some(postgres), state) = (postgres(), state()) else {
        return;
    };
    let Some(pooler) = pgbouncer(postgres.port, 5) else {
        return;
    };
    let address = format!("postgres://lab@127.0.0.1:{}/lab", pooler.port);
    std::fs::write(state.base.path().join("address"), &address).unwrap();
    assert!(is_served(pooler.port).await);
    let mut run = hold("<secret.database>", 5, &state).await;
    let seen = run.observed().await;
    assert!(
        seen.contains("5 of 5 sessions are held, 5 counted"),
        "{seen}"
    );
    assert!(!is_served(pooler.port).await, "all connections are lent");
    run.heals().await;
    until("others are served again", || is_served(pooler.port)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_there_are_is_not_what_was_asked_for() {
    let (Some(postgres), state) = (postgres(), state()) else {
        return;
    };
    std::fs::write(state.base.path().join("address"), "nobody").unwrap();
    // A PostgreSQL has 100 connections unless told otherwise, some of them for superusers.
    let mut run = hold(&postgres.url(), 120, &state).await;
    let why = run.failed().await;
    assert!(why.contains("of 120 sessions are held"), "{why}");
    assert!(why.contains("too many clients"), "{why}");
    run.heals().await;
    until("others are served again", || is_served(postgres.port)).await;
}

/// The part inside the network of the test's own: everything here is gone with it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started in a network namespace by the test below"]
async fn inside_a_network() {
    assert!(
        Command::new("ip")
            .args(["link", "set", "lo", "up"])
            .status()
            .unwrap()
            .success()
    );
    let echo = super::stage::echo().await;
    let other = super::stage::echo().await;
    let target = target_of(Body::Address(Template::literal(&echo.to_string())), None);
    let open = |address: std::net::SocketAddr| {
        std::net::TcpStream::connect_timeout(&address, Duration::from_millis(300)).is_ok()
    };
    for dropped in [Dropped::Both, Dropped::To, Dropped::From] {
        let state = state();
        let mut run = break_with(&target, act(Act::Drop(dropped)), &state).await;
        let seen = run.observed().await;
        assert!(seen.contains("packets dropped"), "{seen}");
        assert!(!open(echo), "{dropped:?}");
        assert!(open(other), "another address is not touched");
        run.heals().await;
        assert!(open(echo), "{dropped:?}");
        assert_eq!(tables(), "", "nothing is left");
    }
}

fn tables() -> String {
    let listed = Command::new("nft")
        .args(["list", "tables"])
        .output()
        .unwrap();
    String::from_utf8(listed.stdout).unwrap()
}

#[test]
fn packets_are_dropped_by_a_table_of_our_own() {
    let programs: Option<Vec<PathBuf>> =
        ["nft", "ip", "unshare"].map(program).into_iter().collect();
    if programs.is_none() || !is_root() {
        println!("skipped: a network of its own needs root, nft, ip and unshare");
        return;
    }
    let inside = Command::new("unshare")
        .arg("--net")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "chaos::holding::inside_a_network", "--ignored"])
        .output()
        .unwrap();
    let said = [inside.stdout, inside.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    if said.contains("unshare failed") {
        println!("skipped: this machine gives no network namespace: {said}");
        return;
    }
    assert!(inside.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}
