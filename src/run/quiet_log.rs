//! The logger of the process: it keeps what libraries log to themselves.
//!
//! Goose installs a logger that prints a line for each failed request unless one is there already.

struct Quiet;

impl log::Log for Quiet {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        false
    }

    fn log(&self, _: &log::Record<'_>) {}

    fn flush(&self) {}
}

/// Installs the logger; a second call changes nothing.
pub fn install() {
    // Only a logger that somebody installed before can make this fail, and that one stays.
    let _ = log::set_logger(&Quiet);
}
