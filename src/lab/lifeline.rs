//! The child's end of its tie to the supervisor: it ends when the supervisor does, however that came about.

use super::messages::{ChildSays, ParentSays};
use std::io::{BufRead, Write};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ties this process to its supervisor and hands what the supervisor says to `heard`.
///
/// The kernel kills this process when the supervisor dies; the end of standard input says the same where the kernel
/// can't, and to a process whose parent died before it asked. A thread of its own waits for it, so that a runtime
/// that is stuck ends too.
pub fn tie(mut heard: impl FnMut(ParentSays) + Send + 'static) {
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if let Ok(message) = serde_json::from_str(&line) {
                heard(message);
            }
        }
        std::process::exit(0);
    });
}

/// Tells the supervisor something.
pub fn say(what: &ChildSays) {
    let mut line = serde_json::to_vec(what).expect("plain data becomes JSON");
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    // If nobody listens any more, the tie ends this process anyway.
    let _ = out.write_all(&line).and_then(|()| out.flush());
}

/// Keeps Ctrl-C from ending this process while the value lives: it reaches the whole process group, and when to end
/// is the supervisor's decision. Needs a runtime.
#[must_use]
pub fn ignore_interrupts() -> Option<Signal> {
    signal(SignalKind::interrupt()).ok()
}
