//! What the generator itself uses: processor time and memory, so that a report can say whether to trust its numbers.

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
use nix::sys::time::TimeValLike;

/// Processor time of this process so far, user and system together, in microseconds.
#[must_use]
pub fn cpu_us() -> u64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| {
        let both = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        u64::try_from(both).unwrap_or(0)
    })
}

/// Files and sockets that this process has open; `None` where `/proc` does not tell.
#[must_use]
pub fn open_files() -> Option<u64> {
    let files = std::fs::read_dir("/proc/self/fd").ok()?;
    Some(files.count() as u64)
}

/// How many it may open.
#[must_use]
pub fn open_files_limit() -> Option<u64> {
    getrlimit(Resource::RLIMIT_NOFILE)
        .ok()
        .map(|(soft, _)| soft)
}

/// Resident memory of this process in bytes; `None` where `/proc` does not tell.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes * 1024)
}
