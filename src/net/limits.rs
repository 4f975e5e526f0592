//! What this process can hold: file descriptors, source ports, memory.
//!
//! Raises what can be raised, reads the rest, and compares it with what a run needs. Decides nothing about what a run needs.

use super::connect::LOOPBACK_SOURCES;
use super::hosts::Endpoint;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs;
use std::io;

/// Descriptors that the process needs besides its connections: run folder, runtime, children's pipes.
const RESERVED_FDS: u64 = 100;
/// The shortest queue of unanswered connects that is common among listeners.
const SHORT_BACKLOG: u64 = 100;
/// Kernel memory of one end of a TCP connection, measured at 300,000 connections: 10.1 KB for both ends.
const KERNEL_BYTES_PER_SOCKET: u64 = 5_100;
/// Memory of this process for one hub, with its share of the allocator's.
const BYTES_PER_HUB: u64 = 2_700;
/// What TLS adds to it, with a certificate and a store of sessions of its own: measured with 5,000 hubs.
const BYTES_PER_TLS_HUB: u64 = 13_800;
/// Memory of this process for one request in flight, with its connection's buffers.
const BYTES_PER_REQUEST: u64 = 40_000;

/// What there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Available {
    /// Limit of the process after raising it.
    pub fds: u64,
    /// Open by now.
    pub fds_open: u64,
    /// Ports that one source address can use towards one destination.
    pub ports: u64,
    /// Memory that the system can give without swapping, in bytes.
    pub memory_bytes: u64,
}

/// Connections at the same time to one destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Towards {
    pub endpoint: Endpoint,
    /// Whether it is on 127.0.0.0/8, where hubs use [`LOOPBACK_SOURCES`] source addresses.
    pub loopback: bool,
    pub hubs: u64,
    /// Whether the hubs speak TLS to it.
    pub secured: bool,
    /// Riders, issuers and probes: they use the system's source address.
    pub requests: u64,
}

/// What a run needs, by destination.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    pub towards: Vec<Towards>,
}

/// Something of which there is too little; the run must not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Shortage {
    #[error(
        "{needed} file descriptors are needed, {available} are left of {limit} (ulimit -n): raise the hard limit, or run fewer hubs per process"
    )]
    Fds {
        needed: u64,
        available: u64,
        limit: u64,
    },
    #[error(
        "{needed} connections to {endpoint} are needed at the same time, {available} ports are to be had from one source address (net.ipv4.ip_local_port_range): run fewer, or widen the range"
    )]
    Ports {
        endpoint: Endpoint,
        needed: u64,
        available: u64,
    },
    #[error(
        "about {needed_mb} MB of memory are needed, {available_mb} MB are left: run fewer hubs on this machine"
    )]
    Memory { needed_mb: u64, available_mb: u64 },
}

impl Available {
    /// Raises the limit of open files to its hard limit and reads what there is.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn raise() -> io::Result<Available> {
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
        let fds = if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() {
            hard
        } else {
            soft
        };
        let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")?;
        let memory = fs::read_to_string("/proc/meminfo")?;
        Ok(Available {
            fds,
            fds_open: fs::read_dir("/proc/self/fd")?.count() as u64,
            ports: port_range(&range)?,
            memory_bytes: memory_available(&memory)?,
        })
    }

    /// Everything that a run would lack; empty if it fits.
    #[must_use]
    pub fn shortages(&self, needs: &Needs) -> Vec<Shortage> {
        let mut lacks = Vec::new();
        let needed = needs.sockets() + RESERVED_FDS;
        let available = self.fds.saturating_sub(self.fds_open);
        if needed > available {
            lacks.push(Shortage::Fds {
                needed,
                available,
                limit: self.fds,
            });
        }
        for towards in &needs.towards {
            let spread = if towards.loopback {
                LOOPBACK_SOURCES
            } else {
                1
            };
            let needed = towards.hubs.div_ceil(spread) + towards.requests;
            if needed > self.ports {
                let endpoint = towards.endpoint.clone();
                lacks.push(Shortage::Ports {
                    endpoint,
                    needed,
                    available: self.ports,
                });
            }
        }
        let bytes = needs.memory_bytes();
        if bytes > self.memory_bytes {
            let (needed_mb, available_mb) = (bytes / 1_000_000, self.memory_bytes / 1_000_000);
            lacks.push(Shortage::Memory {
                needed_mb,
                available_mb,
            });
        }
        lacks
    }

    /// What to know although the run fits.
    #[must_use]
    pub fn notes(&self, needs: &Needs) -> Vec<String> {
        let mut notes = Vec::new();
        for towards in &needs.towards {
            let spread = if towards.loopback {
                LOOPBACK_SOURCES
            } else {
                1
            };
            let from_one = towards.hubs.div_ceil(spread) + towards.requests;
            if from_one > self.ports / 2 && from_one <= self.ports {
                notes.push(format!(
                    "{}: {from_one} connections from one source address are more than half of its {} ports; \
                     each further connect costs about 0.7 ms of CPU",
                    towards.endpoint, self.ports
                ));
            }
            if towards.hubs > SHORT_BACKLOG {
                notes.push(format!(
                    "{}: {} hubs may connect at the same moment; a listener with a short backlog (mosquitto: 100) \
                     drops their SYNs, and connects then take 1, 3 or 7 s longer (SYN retransmit)",
                    towards.endpoint, towards.hubs
                ));
            }
        }
        notes
    }
}

impl Needs {
    /// Sockets at the same time.
    #[must_use]
    pub fn sockets(&self) -> u64 {
        self.towards
            .iter()
            .map(|towards| towards.hubs + towards.requests)
            .sum()
    }

    /// Memory of this process and of its ends of the connections in the kernel.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let own: u64 = self
            .towards
            .iter()
            .map(|towards| {
                let tls = if towards.secured {
                    BYTES_PER_TLS_HUB
                } else {
                    0
                };
                towards.hubs * (BYTES_PER_HUB + tls) + towards.requests * BYTES_PER_REQUEST
            })
            .sum();
        own + self.sockets() * KERNEL_BYTES_PER_SOCKET
    }
}

/// Number of ports in a text of two bounds, like `32768 60999`.
fn port_range(text: &str) -> io::Result<u64> {
    let mut bounds = text.split_whitespace().map(str::parse::<u64>);
    match (bounds.next(), bounds.next()) {
        (Some(Ok(low)), Some(Ok(high))) if low <= high => Ok(high - low + 1),
        _ => Err(io::Error::other(format!(
            "ip_local_port_range reads `{}`",
            text.trim()
        ))),
    }
}

/// `MemAvailable` of /proc/meminfo in bytes.
fn memory_available(text: &str) -> io::Result<u64> {
    text.lines()
        .find_map(|line| {
            line.strip_prefix("MemAvailable:")?
                .trim()
                .strip_suffix(" kB")?
                .parse::<u64>()
                .ok()
        })
        .map(|kilobytes| kilobytes * 1024)
        .ok_or_else(|| io::Error::other("/proc/meminfo has no MemAvailable"))
}
