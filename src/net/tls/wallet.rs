//! The certificates of a group of hubs: those of now, and those that they renew to.

use super::authority::{Authority, AuthorityError, on_all_processors};
use super::identity::{Identity, IdentityError};
use crate::net::state::{StateDirectory, StateError};
use crate::plan::Template;
use crate::plan::identity::{IdentitySource, IdentityTable, Rows};
use crate::plan::target::{Device, Target};
use crate::plan::template::UnknownName;
use crate::plan::tls::KeyFiles;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Certificates that can't be had.
#[derive(Debug, thiserror::Error)]
pub enum WalletError {
    #[error("{owner}, {who}: {source}")]
    Identity {
        owner: String,
        who: String,
        source: IdentityError,
    },
    #[error("device `{device}`: {source}")]
    Authority {
        device: String,
        source: AuthorityError,
    },
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(
        "hub {index} of device `{device}` has no certificate to renew to; give its identities columns `next_cert` and `next_key`"
    )]
    NoNext { device: String, index: u64 },
}

/// Who the agents of a group are, as far as certificates say it.
pub struct Holders<'a> {
    pub target: &'a Target,
    pub device: &'a Device,
    pub rows: Option<&'a Rows>,
    /// Agents that hold a certificate each, from index 0 on.
    pub count: u64,
    pub seed: u64,
}

/// The certificates of a group.
#[derive(Debug)]
pub struct Wallet {
    device: String,
    /// By agent; one for all if they share it.
    held: Vec<Identity>,
    next: Next,
}

#[derive(Debug)]
enum Next {
    Nothing,
    Files(Vec<Identity>),
    Issued {
        authority: Box<Authority>,
        rows: Rows,
        subjects: Vec<String>,
    },
}

impl Wallet {
    /// Reads or issues the certificates of a group; `None` if the device shows none. Takes a while: not for a thread that must not
    /// wait. `value` knows the placeholders of agent `index`.
    ///
    /// # Errors
    /// If a certificate can't be had.
    pub fn open(
        holders: &Holders<'_>,
        value: &(dyn Fn(u64, &str, &mut String) -> bool + Sync),
    ) -> Result<Option<Wallet>, WalletError> {
        let device = holders.device;
        let source = holders
            .rows
            .and_then(|rows| Some((rows, &holders.target.identities.get(rows.set)?.source)));
        let (held, next) = match (source, &device.tls.files) {
            (Some((rows, IdentitySource::Issue(_))), _) => issued(holders, rows, value)?,
            (_, Some(files)) => {
                let owner = Owner {
                    name: format!("device `{}`", device.name),
                    rows: holders.rows,
                    count: holders.count,
                };
                let held = read_all(&owner, files, value)?;
                let next = match &device.tls.next_files {
                    Some(files) => Next::Files(read_all(&owner, files, value)?),
                    None => Next::Nothing,
                };
                (held, next)
            }
            (_, None) => return Ok(None),
        };
        Ok(Some(Wallet {
            device: device.name.clone(),
            held,
            next,
        }))
    }

    /// The certificate that agent `index` begins with.
    #[must_use]
    pub fn identity(&self, index: u64) -> Option<&Identity> {
        held_by(&self.held, index)
    }

    /// The certificate that agent `index` renews to, the `generation`-th time from 1 on.
    ///
    /// # Errors
    /// If there is none, or it can't be issued.
    pub fn next(&self, index: u64, generation: u32) -> Result<Identity, WalletError> {
        let nothing = || WalletError::NoNext {
            device: self.device.clone(),
            index,
        };
        match &self.next {
            Next::Nothing => Err(nothing()),
            // Who renews more than once goes back to the first and comes again.
            Next::Files(next) if generation % 2 == 1 => {
                held_by(next, index).cloned().ok_or_else(nothing)
            }
            Next::Files(_) => self.identity(index).cloned().ok_or_else(nothing),
            Next::Issued {
                authority,
                rows,
                subjects,
            } => {
                let subject = usize::try_from(index)
                    .ok()
                    .and_then(|index| subjects.get(index))
                    .ok_or_else(nothing)?;
                authority
                    .renew(subject, rows.row(index), generation)
                    .map_err(|source| WalletError::Authority {
                        device: self.device.clone(),
                        source,
                    })
            }
        }
    }
}

fn held_by(held: &[Identity], index: u64) -> Option<&Identity> {
    match held {
        [shared] => Some(shared),
        held => held.get(usize::try_from(index).ok()?),
    }
}

fn issued(
    holders: &Holders<'_>,
    rows: &Rows,
    value: &(dyn Fn(u64, &str, &mut String) -> bool + Sync),
) -> Result<(Vec<Identity>, Next), WalletError> {
    let failed = |source| WalletError::Authority {
        device: holders.device.name.clone(),
        source,
    };
    let set = &holders.target.identities[rows.set];
    let IdentitySource::Issue(issue) = &set.source else {
        return Ok((Vec::new(), Next::Nothing));
    };
    let files = issue.authority.as_ref().map(|(cert, key)| {
        (
            PathBuf::from(cert.to_string()),
            PathBuf::from(key.to_string()),
        )
    });
    let files: Option<(&Path, &Path)> = files.as_ref().map(|(cert, key)| (&**cert, &**key));
    let state = StateDirectory::of_user()?;
    let authority =
        Authority::open(&set.name, files, &state, holders.seed, issue.valid).map_err(failed)?;
    let subjects: Vec<String> = (0..holders.count)
        .map(|index| {
            let mut subject = String::new();
            value(index, "serial", &mut subject);
            subject
        })
        .collect();
    let held = authority.issue_all(rows.first, &subjects).map_err(failed)?;
    let next = Next::Issued {
        authority: Box::new(authority),
        rows: rows.clone(),
        subjects,
    };
    Ok((held, next))
}

/// Whose certificates are read.
pub struct Owner<'a> {
    /// As messages name it: ``device `lock` ``.
    pub name: String,
    pub rows: Option<&'a Rows>,
    pub count: u64,
}

/// Reads the certificates of agents, on all processors; only one if all share it.
///
/// # Errors
/// If a file can't be read or used.
pub fn read_all(
    owner: &Owner<'_>,
    files: &KeyFiles,
    value: &(dyn Fn(u64, &str, &mut String) -> bool + Sync),
) -> Result<Vec<Identity>, WalletError> {
    let agents: Vec<u64> = (0..if files.is_shared() { 1 } else { owner.count }).collect();
    on_all_processors(&agents, |index| {
        let path = |template: &Template| {
            let mut text = String::new();
            template.render_into(&mut text, |name, out| value(*index, name, out))?;
            Ok::<_, UnknownName>(PathBuf::from(text))
        };
        let (cert, key) = (path(&files.cert)?, path(&files.key)?);
        Identity::of_files(&cert, &key).map_err(|source| WalletError::Identity {
            owner: owner.name.clone(),
            who: who(owner.rows, *index),
            source,
        })
    })
}

/// Where the identity of an agent is written, or its number.
fn who(rows: Option<&Rows>, index: u64) -> String {
    let table: Option<&Arc<IdentityTable>> = rows.and_then(|rows| rows.table.as_ref());
    let place = table
        .zip(rows)
        .and_then(|(table, rows)| Some((table, table.lines.get(rows.row(index))?)));
    match place {
        Some((table, line)) => format!("{}:{line}", table.file.display()),
        None => format!("agent {index}"),
    }
}
