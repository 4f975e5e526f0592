//! A PgBouncer of the test's own, on a free port, before a PostgreSQL of the test's own.

use super::postgres::{Postgres, by, is_root};
use super::service::{free_port, listens, program};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::time::Duration;

/// A running PgBouncer; killed when dropped.
pub struct PgBouncer {
    pub port: u16,
    server: Child,
    _dir: tempfile::TempDir,
}

/// Starts one with these further lines of `[pgbouncer]`; `None`, with a printed line, if it is not installed. Database `bench`, user
/// `lab` and, for the console, user `stats`, all without a password.
pub fn pgbouncer(postgres: &Postgres, lines: &str) -> Option<PgBouncer> {
    let program = program("pgbouncer")?;
    for _ in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let everybody = |path: &std::path::Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        everybody(dir.path(), 0o755);
        let users = dir.path().join("users.txt");
        std::fs::write(&users, "\"lab\" \"\"\n\"stats\" \"\"\n").unwrap();
        let port = free_port();
        let configuration = dir.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\nbench = host=127.0.0.1 port={} dbname=lab user=lab\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {}\nstats_users = stats\n\
             pool_mode = transaction\nmax_client_conn = 200\nserver_login_retry = 1\n{lines}\n",
            postgres.port,
            users.display(),
        );
        std::fs::write(&configuration, text).unwrap();
        everybody(&users, 0o644);
        everybody(&configuration, 0o644);
        // It refuses to run as root, too.
        let owner = is_root().then_some("postgres");
        let server = by(owner, &program)
            .arg(&configuration)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut bouncer = PgBouncer {
            port,
            server,
            _dir: dir,
        };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let stands = listens(address, Duration::from_secs(5));
        // Somebody else may have taken the port in between.
        if stands && bouncer.server.try_wait().unwrap().is_none() {
            return Some(bouncer);
        }
    }
    panic!("PgBouncer did not start");
}

impl PgBouncer {
    /// Where clients find the database.
    pub fn url(&self) -> String {
        format!("postgres://lab@127.0.0.1:{}/bench", self.port)
    }

    /// Where its console is.
    pub fn console(&self) -> String {
        format!("postgres://stats@127.0.0.1:{}/pgbouncer", self.port)
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        // The process itself or, started as root, `setpriv`, which became it.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
