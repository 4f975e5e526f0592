//! A production system in a line of the command line: `1_000_000,50,20ms,5s,full_jitter:1s:60s`.

use super::units;
use crate::plan::boundary::System;
use crate::retry::{Backoff, Retry};
use std::time::Duration;

const FORM: &str = "write N,c,s,T,policy: hubs, connections of the pool, how long a connect holds one, timeout, and how hubs come back, \
     such as `1_000_000,50,20ms,5s,full_jitter:1s:60s` (or immediate, fixed:1s, exponential:1s:60s, equal_jitter:1s:60s, decorrelated:1s:60s)";
const FACTOR: f64 = 2.0;

/// Reads the line.
///
/// # Errors
/// What is wrong with it, and how it should look.
pub fn system(text: &str) -> Result<System, String> {
    let wrong = |what: &str| format!("error: --like {text}: {what}; {FORM}");
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let [hubs, connections, service, timeout, policy] = parts.as_slice() else {
        return Err(wrong(&format!("{} parts, not 5", parts.len())));
    };
    let count = |part: &str, what: &str| {
        let digits = part.replace('_', "");
        let number = digits.parse::<u64>().ok().filter(|number| *number > 0);
        number.ok_or_else(|| wrong(&format!("`{part}` is no number of {what}")))
    };
    let time = |part: &str| {
        let time = units::duration(part).map_err(|bad| wrong(&bad.message))?;
        if time.is_zero() {
            return Err(wrong(&format!("`{part}` is no time at all")));
        }
        Ok(time)
    };
    Ok(System {
        hubs: count(hubs, "hubs")?,
        connections: count(connections, "connections")?,
        service: time(service)?,
        timeout: time(timeout)?,
        retry: Retry::of(backoff(policy, &time).map_err(|bad| match bad {
            Some(bad) => bad,
            None => wrong(&format!("`{policy}` is no policy")),
        })?),
    })
}

/// `None`: not a policy; otherwise what is wrong with a time in it.
fn backoff(
    text: &str,
    time: &dyn Fn(&str) -> Result<Duration, String>,
) -> Result<Backoff, Option<String>> {
    let parts: Vec<&str> = text.split(':').collect();
    let factor = FACTOR;
    let grown = |base: &str, cap: &str| -> Result<(Duration, Duration), Option<String>> {
        let (base, cap) = (time(base).map_err(Some)?, time(cap).map_err(Some)?);
        if base > cap {
            Err(None)
        } else {
            Ok((base, cap))
        }
    };
    match parts.as_slice() {
        ["immediate"] => Ok(Backoff::Immediate),
        ["fixed", every] => Ok(Backoff::Fixed {
            every: time(every).map_err(Some)?,
        }),
        [kind, base, cap] => {
            let (base, cap) = grown(base, cap)?;
            match *kind {
                "exponential" => Ok(Backoff::Exponential { base, cap, factor }),
                "full_jitter" => Ok(Backoff::FullJitter { base, cap, factor }),
                "equal_jitter" => Ok(Backoff::EqualJitter { base, cap, factor }),
                "decorrelated" => Ok(Backoff::Decorrelated { base, cap }),
                _ => Err(None),
            }
        }
        _ => Err(None),
    }
}
