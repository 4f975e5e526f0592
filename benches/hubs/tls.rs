//! What mutual TLS costs: `cargo bench --bench hubs -- --tls [HUBS] [ROUNDS]` (5 000 and 3).
//!
//! Each fleet runs in a fresh process, each hub with a P-256 certificate of its own, against a server in a process of its own. The
//! first connects are full handshakes; then every hub is reset once and comes back, with a full handshake again or by taking its session
//! up. Memory is what the process holds more than before: certificates, keys and stores of sessions included. The server's counts of
//! handshakes must equal ours.

use super::machine::{LIMIT, cpu_us, median, resident_bytes, run_again};
use super::plan::plan;
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use rushhour::event::{Event, Sink};
use rushhour::live::hubs::{self, HubFleet};
use rushhour::net::clock::Clock;
use rushhour::net::hosts::Hosts;
use rushhour::net::limits::Available;
use rushhour::net::state::StateDirectory;
use rushhour::net::tls::Authority;
use rushhour::plan::fault::{Disconnect, How, TriggerKind};
use rushhour::plan::identity::{IdentitySet, IdentitySource, Issue, Rows};
use rushhour::plan::tls::Resume;
use rushhour::plan::{Plan, Template};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The fleet connects, and comes back, at this rate: what a hub costs is asked, not how many come in a second.
const HUBS_PER_SECOND: u32 = 1_000;
const VALID: Duration = Duration::from_secs(24 * 60 * 60);

/// What one process measured.
#[derive(Debug, Clone, Copy)]
struct Measured {
    /// Before any hub connects: certificates and keys.
    material_bytes: f64,
    bytes: f64,
    first_us: f64,
    again_us: f64,
}

/// Measures in turn hubs that never take a session up and hubs that do, and prints medians beside those that were measured of a lean
/// client with the same library: <https://docs.rs/rustls> 0.23.46, P-256, X25519, TLS 1.3, whole connects over loopback.
pub fn compare(hubs: usize, rounds: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    certificates(folder.path());
    let mut measured: [Vec<Measured>; 2] = [Vec::new(), Vec::new()];
    for round in 1..=rounds {
        for (resume, results) in [Resume::Never, Resume::Own].into_iter().zip(&mut measured) {
            let result = in_fresh_process(folder.path(), hubs, resume);
            println!(
                "round {round}, resume {:>5}: {:>7.0} B a hub ({:.0} of it before any connects), first connect {:>6.1} us CPU, again {:>6.1}",
                resume.name(),
                result.bytes,
                result.material_bytes,
                result.first_us,
                result.again_us
            );
            results.push(result);
        }
    }
    let of =
        |row: usize, value: fn(&Measured) -> f64| median(measured[row].iter().map(value).collect());
    println!("medians of {rounds} rounds with {hubs} hubs of mutual TLS 1.3, client side:");
    println!(
        "memory a hub, with its store of sessions: {:>7.0} B (lean client: 13 814)",
        of(1, |one| one.bytes)
    );
    println!(
        "memory a hub, without:                    {:>7.0} B",
        of(0, |one| one.bytes)
    );
    println!(
        "CPU a connect, full:    {:>6.1} us first, {:>6.1} after a reset (lean client: 316 to 333)",
        of(0, |one| one.first_us),
        of(0, |one| one.again_us)
    );
    println!(
        "CPU a connect, resumed: {:>6.1} us after a reset (lean client: 177 to 186)",
        of(1, |one| one.again_us)
    );
}

/// An authority, and the server's certificate.
fn certificates(folder: &Path) {
    let state = StateDirectory::under(&folder.join("state")).expect("a folder of ours");
    let (ca, key) = (folder.join("ca.pem"), folder.join("ca-key.pem"));
    Authority::open("bench", Some((&ca, &key)), &state, 1, VALID).expect("an authority");
    let read = |path: &Path| fs::read_to_string(path).expect("a file of ours");
    let secret = KeyPair::from_pem(&read(&key)).expect("its key");
    let issuer = Issuer::from_ca_cert_pem(&read(&ca), secret).expect("an authority");
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate().expect("a key");
    let server = params.signed_by(&key, &issuer).expect("a certificate");
    fs::write(folder.join("server.pem"), server.pem()).expect("a file");
    fs::write(folder.join("server-key.pem"), key.serialize_pem()).expect("a file");
}

/// The server's process.
struct Server {
    child: Child,
    said: BufReader<ChildStdout>,
    port: String,
}

impl Server {
    fn start(folder: &Path) -> Server {
        let mut child = Command::new(std::env::current_exe().expect("the path of this program"))
            .arg("--tls-server")
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started again");
        let mut said = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut port = String::new();
        said.read_line(&mut port).expect("its port");
        Server {
            child,
            said,
            port: port.trim().to_owned(),
        }
    }

    /// Ends it; how many handshakes were full, and how many resumed.
    fn stop(mut self) -> Vec<f64> {
        drop(self.child.stdin.take());
        let mut counts = String::new();
        self.said.read_to_string(&mut counts).expect("its counts");
        self.child.wait().expect("it ends");
        let counts = counts.split_whitespace();
        counts.map(|text| text.parse().expect("a number")).collect()
    }
}

fn in_fresh_process(folder: &Path, hubs: usize, resume: Resume) -> Measured {
    let server = Server::start(folder);
    let text = folder.to_str().expect("a path in UTF-8");
    let count = hubs.to_string();
    let arguments = ["--tls-fleet", text, &server.port, &count, resume.name()];
    // Keys are not to lie among the user's.
    let numbers = run_again(&arguments, &[("XDG_STATE_HOME", &folder.join("state"))]);
    let [material_bytes, bytes, first_us, again_us, full, resumed] = numbers[..] else {
        panic!("nothing was measured: {numbers:?}");
    };
    assert_eq!(
        server.stop(),
        [full, resumed],
        "handshakes, full and resumed"
    );
    Measured {
        material_bytes,
        bytes,
        first_us,
        again_us,
    }
}

/// Runs one fleet in this process and prints what it took.
pub fn measure(arguments: &[String]) {
    let [folder, port, hubs, resume] = arguments else {
        panic!("--tls-fleet FOLDER PORT HUBS RESUME");
    };
    Available::raise().expect("limits can be read");
    let count: usize = hubs.parse().expect("a number of hubs");
    let resume = match resume.as_str() {
        "never" => Resume::Never,
        _ => Resume::Own,
    };
    let plan = Arc::new(secured(Path::new(folder), port, count, resume));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(run(&plan, count));
    // Its hubs end with it.
    std::process::exit(0);
}

#[derive(Default)]
struct Handshakes {
    full: AtomicU64,
    resumed: AtomicU64,
}

impl Handshakes {
    fn of(&self) -> (u64, u64) {
        (
            self.full.load(Ordering::Relaxed),
            self.resumed.load(Ordering::Relaxed),
        )
    }
}

async fn run(plan: &Arc<Plan>, count: usize) {
    let handshakes = Arc::new(Handshakes::default());
    let counting = Arc::clone(&handshakes);
    let sink: Sink = Arc::new(move |event| {
        if let Event::Secured { resumed, .. } = event {
            let count = if resumed {
                &counting.resumed
            } else {
                &counting.full
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let hosts = Arc::new(Hosts::of(&plan.target).expect("the shard has host and port"));
    let before = resident_bytes();
    let fleet = hubs::start(plan, &hosts, Clock::start(), "bench", &[sink])
        .await
        .expect("certificates can be issued");
    let (material, cpu) = (resident_bytes(), cpu_us());
    assert!(fleet.all_stand(LIMIT).await, "{:?}", fleet.standing());
    let first = cpu_us() - cpu;
    // What the last connects freed has been given back by then, and nobody pings yet.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let bytes = resident_bytes();
    let cpu = cpu_us();
    come_back(&fleet, &handshakes, count).await;
    let again = cpu_us() - cpu;
    let (full, resumed) = handshakes.of();
    let each = |whole: f64| whole / count as f64;
    println!(
        "{} {} {} {} {full} {resumed}",
        each(material - before),
        each(bytes - before),
        each(first),
        each(again)
    );
    std::mem::forget(fleet);
}

/// Resets every hub once and waits until all have come back.
async fn come_back(fleet: &HubFleet, handshakes: &Handshakes, count: usize) {
    let disconnect = Disconnect {
        group: 0,
        share: 1.0,
        within: ramp(count),
        by: How::Reset,
        away: Duration::ZERO,
        readmit: None,
    };
    fleet.order(&TriggerKind::Disconnect(disconnect), 1);
    let end = tokio::time::Instant::now() + LIMIT;
    while {
        let (full, resumed) = handshakes.of();
        full + resumed < 2 * count as u64
    } {
        assert!(tokio::time::Instant::now() < end, "{:?}", handshakes.of());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(fleet.all_stand(LIMIT).await, "{:?}", fleet.standing());
}

fn ramp(count: usize) -> Duration {
    Duration::from_secs(1) * u32::try_from(count).expect("a number of hubs") / HUBS_PER_SECOND
}

fn secured(folder: &Path, port: &str, count: usize, resume: Resume) -> Plan {
    let file = |name: &str| {
        let path: PathBuf = folder.join(name);
        Template::parse(path.to_str().expect("a path in UTF-8")).expect("no placeholder")
    };
    let mut plan = plan(count, std::iter::once(format!("mqtts://127.0.0.1:{port}")));
    plan.target.trust = Some(file("ca.pem"));
    plan.target.identities = vec![IdentitySet {
        name: "bench".to_owned(),
        source: IdentitySource::Issue(Issue {
            authority: Some((file("ca.pem"), file("ca-key.pem"))),
            valid: VALID,
        }),
    }];
    let device = &mut plan.target.devices[0];
    device.identity = Some(0);
    device.tls.resume = resume;
    let group = &mut plan.hubs[0];
    group.connect_over = ramp(count);
    group.identity = Some(Rows {
        set: 0,
        first: 0,
        count,
        table: None,
    });
    plan
}
