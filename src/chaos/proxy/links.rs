//! The links of a proxy by name. They come and go while it runs.

use super::link::Link;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Every link of this process.
#[derive(Default)]
pub(super) struct Links {
    links: Mutex<BTreeMap<String, Arc<Link>>>,
}

impl Links {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Link>>> {
        // A panic while holding it leaves plain data behind, which is as good as ever.
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// By name.
    pub(super) fn all(&self) -> Vec<Arc<Link>> {
        self.lock().values().cloned().collect()
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<Link>> {
        self.lock().get(name).cloned()
    }

    /// Puts a link in; it takes the place of one of the same name.
    pub(super) fn insert(&self, link: Arc<Link>) {
        self.lock().insert(link.name.clone(), link);
    }

    pub(super) fn remove(&self, name: &str) -> Option<Arc<Link>> {
        self.lock().remove(name)
    }
}
