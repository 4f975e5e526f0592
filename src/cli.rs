//! Commands, help texts, the table of exit codes.

/// Runs the program with the arguments of the process and gives its exit code.
#[must_use]
pub fn main() -> u8 {
    0
}
