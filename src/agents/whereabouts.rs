//! Where a hub connects next: which shard, or whether to ask for it first.
//!
//! Decides by the target file's `find:` alone, from what came of earlier attempts. Knows neither addresses nor time.

use crate::plan::target::Find;

/// A row in `Device::shards`.
pub type ShardRow = u16;

/// How the hubs of a group find their shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Always the same: by hash, or one address.
    Fixed,
    /// The next of so many after an attempt that failed.
    InTurn(ShardRow),
    /// Asked for before each attempt.
    Ask,
    /// The first, until a Server Reference names another.
    Redirect,
}

impl Finding {
    /// The way that a device of so many shards has.
    #[must_use]
    pub fn of(find: &Find, shards: usize) -> Finding {
        match find {
            Find::Balancer | Find::Hash(_) => Finding::Fixed,
            Find::List(_) => Finding::InTurn(ShardRow::try_from(shards).unwrap_or(ShardRow::MAX)),
            Find::Ask(_) => Finding::Ask,
            Find::Redirect => Finding::Redirect,
        }
    }
}

/// A Server Reference that names a shard of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    pub shard: ShardRow,
    /// Server moved (0x9D); otherwise: use another server (0x9C), for the time being.
    pub for_good: bool,
}

/// The next step on the way to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Connect(ShardRow),
    Ask,
}

/// What one hub knows of its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whereabouts {
    /// Where it belongs.
    home: ShardRow,
    /// Where it was sent for the time being.
    guest: Option<ShardRow>,
    /// A reference came since the last attempt began, so that the end of this attempt or session does not undo it.
    pointed: bool,
}

impl Whereabouts {
    /// A hub that belongs to this shard as far as is known.
    #[must_use]
    pub fn new(home: ShardRow) -> Whereabouts {
        Whereabouts {
            home,
            guest: None,
            pointed: false,
        }
    }

    /// What an attempt begins with.
    pub fn next(&mut self, finding: Finding) -> Next {
        self.pointed = false;
        match finding {
            Finding::Ask => Next::Ask,
            Finding::Fixed | Finding::InTurn(_) | Finding::Redirect => Next::Connect(self.shard()),
        }
    }

    /// Where it connects, or is connected.
    #[must_use]
    pub fn shard(&self) -> ShardRow {
        self.guest.unwrap_or(self.home)
    }

    /// The target answered the question.
    pub fn found(&mut self, shard: ShardRow) {
        self.home = shard;
    }

    /// A Server Reference came; false if the hub does not follow such.
    pub fn pointed(&mut self, finding: Finding, reference: Reference) -> bool {
        if finding != Finding::Redirect {
            return false;
        }
        self.pointed = true;
        if reference.for_good {
            self.home = reference.shard;
            self.guest = None;
        } else {
            self.guest = Some(reference.shard);
        }
        true
    }

    /// The attempt to connect failed. True if a reference says where to go at once.
    pub fn attempt_failed(&mut self, finding: Finding) -> bool {
        if let Finding::InTurn(shards) = finding {
            self.home = (self.home + 1) % shards.max(1);
        }
        self.end()
    }

    /// The session ended. True if a reference says where to go at once.
    pub fn session_ended(&mut self) -> bool {
        self.end()
    }

    /// A guest goes home when the place where it was sent fails it.
    fn end(&mut self) -> bool {
        if !self.pointed {
            self.guest = None;
        }
        self.pointed
    }
}
