//! The line while a run goes on: one that updates itself on a terminal, one every five seconds elsewhere.

use crate::measure::{Live, figures};
use std::fmt::Write as _;
use std::io::{self, Write};

/// Seconds between two lines where the line can't update itself.
pub const EVERY_SECONDS: i64 = 5;

/// The widest line.
const COLUMNS: usize = 99;

/// Writes the live line.
#[derive(Debug)]
pub struct LiveLine<W: Write> {
    out: W,
    /// The line is written over.
    updates: bool,
    /// Time of the last line that stays.
    last_s: Option<i64>,
    /// A line stands that is to be written over.
    standing: bool,
}

impl<W: Write> LiveLine<W> {
    /// `terminal`: whether `out` is one.
    #[must_use]
    pub fn new(out: W, terminal: bool) -> LiveLine<W> {
        LiveLine {
            out,
            updates: terminal,
            last_s: None,
            standing: false,
        }
    }

    /// Shows how the run stands. To be called about once a second.
    ///
    /// # Errors
    /// What writing gives.
    pub fn show(&mut self, live: &Live) -> io::Result<()> {
        let text = line(live);
        if self.updates {
            write!(self.out, "\r\u{1b}[2K{text}")?;
            self.standing = true;
        } else {
            // The time starts anew at 0:00.
            let soon = |last: i64| (last..last + EVERY_SECONDS).contains(&live.time_s);
            if self.last_s.is_some_and(soon) {
                return Ok(());
            }
            self.last_s = Some(live.time_s);
            writeln!(self.out, "{text}")?;
        }
        self.out.flush()
    }

    /// Writes a line of its own that stays: a trigger, a fault, a warning.
    ///
    /// # Errors
    /// What writing gives.
    pub fn say(&mut self, text: &str) -> io::Result<()> {
        if self.standing {
            write!(self.out, "\r\u{1b}[2K")?;
            self.standing = false;
        }
        writeln!(self.out, "{text}")?;
        self.out.flush()
    }

    /// Ends the updating line, so that what follows begins a line of its own.
    ///
    /// # Errors
    /// What writing gives.
    pub fn finish(&mut self) -> io::Result<()> {
        if self.standing {
            self.standing = false;
            writeln!(self.out)?;
        }
        self.out.flush()
    }
}

/// `2:05  load, drop  hubs 4,902/8,000  120/s  ok 98.2%  p95 unlock 1.20 s  in flight 87  pool wait 12.3 ms`
#[must_use]
pub fn line(live: &Live) -> String {
    let mut text = format!("{:>6}  {}", figures::clock(live.time_s), live.phase);
    if live.hubs_total > 0 {
        let _ = write!(
            text,
            "  hubs {}/{}",
            figures::count(live.hubs_connected),
            figures::count(live.hubs_total)
        );
    }
    let _ = write!(
        text,
        "  {}/s",
        figures::number((live.arrivals_per_second * 10.0).round() / 10.0)
    );
    if let Some(success) = live.success {
        let _ = write!(text, "  ok {}", figures::share(success));
    }
    if !live.latency_p95_us.is_empty() {
        let steps = live
            .latency_p95_us
            .iter()
            .map(|(name, us)| format!("{name} {}", figures::time(*us as f64)));
        let _ = write!(text, "  p95 {}", steps.collect::<Vec<_>>().join(", "));
    }
    let _ = write!(text, "  in flight {}", figures::count(live.in_flight));
    if let Some(wait) = live.pool_wait_us {
        let _ = write!(text, "  pool wait {}", figures::time(wait));
    }
    if text.chars().count() > COLUMNS {
        text = text.chars().take(COLUMNS - 1).chain(['…']).collect();
    }
    text
}
