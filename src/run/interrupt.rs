//! Ctrl-C and SIGTERM as a value that a run waits on.
//!
//! The Ctrl-C handler is installed before anything else: Goose installs its own unless there is one, and its second Ctrl-C
//! ends the process on the spot, with faults in place.

use super::ending::Ending;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Tells whether the run was asked to end, and by what.
#[derive(Debug, Clone)]
pub struct Interrupt {
    told: watch::Receiver<Option<Ending>>,
    tell: watch::Sender<Option<Ending>>,
}

impl Interrupt {
    /// Installs the Ctrl-C handler. Call once, first thing in the process.
    ///
    /// # Errors
    /// If the operating system refuses the handler.
    pub fn install() -> Result<Interrupt, ctrlc::Error> {
        let (tell, told) = watch::channel(None);
        let on_interrupt = tell.clone();
        ctrlc::set_handler(move || first(&on_interrupt, Ending::Interrupted))?;
        Ok(Interrupt { told, tell })
    }

    /// Also listens for SIGTERM and SIGHUP, inside a runtime.
    ///
    /// # Errors
    /// If the operating system refuses the handlers.
    pub fn listen(&self) -> std::io::Result<()> {
        for kind in [SignalKind::terminate(), SignalKind::hangup()] {
            let mut stream = signal(kind)?;
            let tell = self.tell.clone();
            tokio::spawn(async move {
                while stream.recv().await.is_some() {
                    first(&tell, Ending::Terminated);
                }
            });
        }
        Ok(())
    }

    /// What the run was asked to end by, if it was.
    #[must_use]
    pub fn seen(&self) -> Option<Ending> {
        *self.told.borrow()
    }

    /// Waits until the run is asked to end.
    pub async fn wait(&self) -> Ending {
        let mut told = self.told.clone();
        let seen = told
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|ending| *ending);
        match seen {
            Some(ending) => ending,
            // Unreachable while `self` holds the sender: then there is nothing to wait for.
            None => std::future::pending().await,
        }
    }
}

/// The first signal decides; a second one changes nothing, so that healing is never skipped.
fn first(tell: &watch::Sender<Option<Ending>>, ending: Ending) {
    tell.send_if_modified(|told| {
        let is_first = told.is_none();
        if is_first {
            *told = Some(ending);
        }
        is_first
    });
}
