//! What processes take, and how they are started.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Longer than anything here takes.
pub const LIMIT: Duration = Duration::from_secs(120);

/// The value in the middle.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

/// Runs this program again with these arguments and environment variables, and gives the numbers that it prints.
pub fn run_again(arguments: &[&str], variables: &[(&str, &Path)]) -> Vec<f64> {
    let program = std::env::current_exe().expect("the path of this program");
    let output = Command::new(program)
        .args(arguments)
        .envs(variables.iter().copied())
        .stderr(Stdio::inherit())
        .output()
        .expect("this program can be started again");
    let line = String::from_utf8(output.stdout).expect("numbers");
    line.split_whitespace()
        .map(|text| text.parse().expect("a number"))
        .collect()
}

/// User and system time of this process in microseconds.
pub fn cpu_us() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the system tells");
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64
}

/// Memory of this process that is in RAM.
pub fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the system tells");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("it has VmRSS");
    let kilobytes: f64 = line
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number");
    kilobytes * 1024.0
}
