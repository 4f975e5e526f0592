//! `rushhour doctor`: everything that a target file names, looked at once before anybody sends load.
//!
//! Reaches every host, reads every probe, and says what this machine has. Sends nothing that could change the target: a connection
//! that is closed again, `GET /` where HTTP is spoken, and what probes ask.

use super::ending::Ending;
use super::interrupt::Interrupt;
use super::lab_process::LabProcess;
use super::{Stopped, prepare};
use crate::measure::figures;
use crate::net::connect::{self, Source};
use crate::net::hosts::{Endpoint, Hosts};
use crate::net::http::Http;
use crate::net::limits::Available;
use crate::net::secrets::Secrets;
use crate::plan::Target;
use crate::plan::signal::Signal;
use crate::probe::{self, Look, Sight};
use crate::spec;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::time::timeout;

/// How long one host may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// A `Date` header has whole seconds: within this the clocks agree as far as it can tell.
const CLOCKS_AGREE_S: f64 = 1.5;
const LAB_GOODBYE: Duration = Duration::from_secs(5);

/// What `doctor` is given.
#[derive(Debug, Clone, clap::Args)]
pub struct DoctorArguments {
    /// The target file.
    #[arg(long, value_name = "FILE")]
    pub target: PathBuf,
}

/// Looks at a target: 0 if everything is reached and read, 4 if not, 2 for a bad file.
#[must_use]
pub fn doctor(arguments: &DoctorArguments, interrupt: &Interrupt) -> Ending {
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return super::tell(&Stopped::internal(error)),
    };
    let looked = runtime.block_on(async {
        interrupt.listen().map_err(Stopped::internal)?;
        tokio::select! {
            looked = examine(arguments) => looked,
            ending = interrupt.wait() => Err(Stopped::Interrupted(ending)),
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    looked.unwrap_or_else(|stopped| super::tell(&stopped))
}

async fn examine(arguments: &DoctorArguments) -> Result<Ending, Stopped> {
    let target = spec::read_target(&arguments.target).map_err(Stopped::refused)?;
    let secrets = Secrets::read(&target.secrets).map_err(|errors| {
        let lines: Vec<String> = errors
            .iter()
            .map(|error| format!("error: {error}"))
            .collect();
        Stopped::Refused(lines.join("\n"))
    })?;
    let folder = std::env::temp_dir().join(format!("rushhour-doctor-{}", std::process::id()));
    let lab = match &target.lab {
        Some(spec) => Some(
            LabProcess::start(spec, false, &folder)
                .await
                .map_err(Stopped::refused)?,
        ),
        None => None,
    };
    let target = target
        .resolve(&|name| {
            lab.as_ref()?
                .places
                .get(name.strip_prefix("lab.")?)
                .cloned()
        })
        .resolve(&|name| {
            secrets
                .value(name.strip_prefix("secret.")?)
                .map(str::to_owned)
        });
    let looked = look(&target, lab.as_ref()).await;
    if let Some(lab) = lab {
        lab.stop(LAB_GOODBYE).await.map_err(Stopped::internal)?;
        // What the lab left there is of no use to anybody.
        let _ = std::fs::remove_dir_all(&folder);
    }
    let (text, problems) = looked?;
    super::print(&secrets.redactor().redact(&text))?;
    Ok(if problems == 0 {
        Ending::Passed
    } else {
        Ending::Inconclusive
    })
}

/// What was seen, in words, and how much of it is wrong.
async fn look(target: &Target, lab: Option<&LabProcess>) -> Result<(String, usize), Stopped> {
    let hosts = Arc::new(Hosts::of(target).map_err(Stopped::refused)?);
    if let Some(lab) = lab {
        prepare::lab_serves(lab, &hosts).await?;
    }
    let mut text = String::new();
    machine(&mut text)?;
    let mut problems = 0;
    let http = Http::new(Arc::clone(&hosts), 1, PATIENCE).map_err(Stopped::internal)?;
    text.push_str("\nHOSTS\n");
    let named: Vec<(Endpoint, String)> = hosts
        .named()
        .map(|(endpoint, place)| (endpoint.clone(), place.to_owned()))
        .collect();
    let links = |place: &str| place.starts_with("links.") && place.ends_with(".listen");
    for (endpoint, place) in named {
        if links(&place) {
            let _ = writeln!(text, "  - {endpoint}  ({place}) opened by a run itself");
            continue;
        }
        match reach(&hosts, &endpoint).await {
            Ok(took) => {
                let _ = writeln!(
                    text,
                    "  \u{2713} {endpoint}  ({place}) connected in {}",
                    figures::time(took.as_micros() as f64)
                );
            }
            Err(why) => {
                problems += 1;
                let _ = writeln!(text, "  \u{2717} {endpoint}  ({place}) {why}");
            }
        }
    }
    problems += clocks(target, &http, &mut text).await;
    let looks = probe::look(&target.probes, &hosts)
        .await
        .map_err(Stopped::refused)?;
    text.push_str("\nPROBES\n");
    if looks.is_empty() {
        text.push_str("  none: pool wait, queues and the broker's own counts have no data\n");
    }
    for look in &looks {
        problems += usize::from(look.seen.is_err());
        probe(look, target.probes.timeout, &mut text);
    }
    let _ = match problems {
        0 => writeln!(text, "\nEverything is reached and read."),
        1 => writeln!(text, "\n1 problem."),
        many => writeln!(text, "\n{many} problems."),
    };
    Ok((text, problems))
}

/// Files and ports of this machine; what a plan needs of them is told by `check`.
fn machine(text: &mut String) -> Result<(), Stopped> {
    let available = Available::raise().map_err(Stopped::internal)?;
    let _ = writeln!(
        text,
        "THIS MACHINE\n  open files: {} of {} are left, one for each hub\n  source ports: {} for one source address towards one destination\n  \
         memory: {} MB are left",
        figures::count(available.fds.saturating_sub(available.fds_open)),
        figures::count(available.fds),
        figures::count(available.ports),
        figures::count(available.memory_bytes / 1_000_000),
    );
    Ok(())
}

async fn reach(hosts: &Hosts, endpoint: &Endpoint) -> Result<Duration, String> {
    let began = Instant::now();
    let connected = timeout(PATIENCE, async {
        let peers = hosts
            .peers(endpoint)
            .await
            .map_err(|error| error.to_string())?;
        let mut last = "no address".to_owned();
        for peer in peers {
            match connect::connect(peer, Source::System).await {
                Ok(stream) => {
                    connect::close(stream);
                    return Ok(());
                }
                Err(error) => last = error.to_string(),
            }
        }
        Err(last)
    });
    match connected.await {
        Ok(Ok(())) => Ok(began.elapsed()),
        Ok(Err(why)) => Err(format!(
            "{why}; is it running, and may this machine reach it?"
        )),
        Err(_) => Err(format!(
            "no connection within {} s: a firewall that drops packets, or a wrong address",
            PATIENCE.as_secs()
        )),
    }
}

/// The clock of every server that tells its own by `Date`, against ours.
async fn clocks(target: &Target, http: &Http, text: &mut String) -> usize {
    let mut roots: Vec<String> = target
        .addresses()
        .into_iter()
        .filter_map(|(_, address)| root_of(&address))
        .collect();
    roots.sort_unstable();
    roots.dedup();
    let mut apart = 0;
    let mut said = String::new();
    for root in roots {
        let Some(offset_s) = clock_of(http, &root).await else {
            continue;
        };
        let agrees = offset_s.abs() <= CLOCKS_AGREE_S;
        apart += usize::from(!agrees);
        let _ = if agrees {
            writeln!(said, "  \u{2713} {root} agrees within a second")
        } else {
            writeln!(
                said,
                "  \u{2717} {root} is {offset_s:+.1} s off: set one of the two by NTP, or its logs can't be laid beside the report"
            )
        };
    }
    if !said.is_empty() {
        let _ = write!(text, "\nCLOCKS\n{said}");
    }
    apart
}

/// `http://host:port/` of an address that speaks HTTP.
fn root_of(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    matches!(scheme, "http" | "https").then(|| format!("{scheme}://{host}/"))
}

/// How far its clock is ahead of ours, in seconds.
async fn clock_of(http: &Http, root: &str) -> Option<f64> {
    let date = http.date(root, PATIENCE).await?;
    let seconds = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).ok();
    // The header cuts the second off: on average half of one is missing.
    let theirs = seconds(date)?.as_secs_f64() + 0.5;
    Some(theirs - seconds(SystemTime::now())?.as_secs_f64())
}

fn probe(look: &Look, limit: Duration, text: &mut String) {
    let sight = match &look.seen {
        Ok(sight) => sight,
        Err(why) => {
            let _ = writeln!(
                text,
                "  \u{2717} {} ({}) {}\n      {why}",
                look.source,
                look.plays.name(),
                look.place
            );
            return;
        }
    };
    let _ = writeln!(
        text,
        "  \u{2713} {} ({}) {}\n      answers in {} ({} on a new connection, {} allowed), {} bytes{}",
        look.source,
        look.plays.name(),
        look.place,
        figures::time(sight.again.as_micros() as f64),
        figures::time(sight.first.as_micros() as f64),
        figures::time(limit.as_micros() as f64),
        figures::count(sight.bytes),
        lines(sight),
    );
    for found in &sight.found {
        let unit = match found.scale {
            _ if !found.signal.is_time() => "",
            1e6 => ", in s",
            1e3 => ", in ms",
            1.0 => ", in us",
            _ => ", in ns",
        };
        let value = found.value.map_or_else(String::new, |value| {
            let shown = if found.signal.is_time() {
                figures::time(value)
            } else {
                figures::number(value)
            };
            format!(" = {shown}")
        });
        let top = found.top_bucket_us.map_or_else(String::new, |top| {
            format!(", histogram up to {}", figures::time(top))
        });
        let _ = writeln!(
            text,
            "      {:<12} {}{unit}{top}{value}",
            found.signal.name(),
            found.metric
        );
        if found.signal != Signal::Value && found.series.iter().any(|labels| labels != "{}") {
            let _ = writeln!(text, "                   {}", found.series.join(" "));
        }
    }
    for lack in &sight.lacks {
        let _ = writeln!(text, "      note: {lack}");
    }
}

fn lines(sight: &Sight) -> String {
    let mut text = String::new();
    for (count, what) in [
        (sight.bad_lines, "lines that make no sense"),
        (sight.duplicate_lines, "lines that repeat a series"),
    ] {
        if count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    text
}
