//! Who hubs and riders are: rows of a table that the user has, or certificates that the run issues.

use super::template::Template;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// One entry of the target's `identities`.
#[derive(Debug, Clone, PartialEq)]
pub struct IdentitySet {
    pub name: String,
    pub source: IdentitySource,
}

/// Where identities come from.
#[derive(Debug, Clone, PartialEq)]
pub enum IdentitySource {
    Csv(Arc<IdentityTable>),
    Issue(Issue),
}

/// A table with a header. Its values may be passwords, so nothing prints them.
#[derive(Clone, PartialEq, Eq)]
pub struct IdentityTable {
    pub file: PathBuf,
    /// The header.
    pub columns: Vec<String>,
    /// As long as `columns`. Paths of certificates and keys are whole already.
    pub rows: Vec<Box<[String]>>,
    /// The line of the file on which a row begins, parallel to `rows`.
    pub lines: Vec<u32>,
}

/// Certificates of our own for every hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// PEM files of the authority's certificate and key, made if both are missing; without it the authority is one of the
    /// user's state directory.
    pub authority: Option<(Template, Template)>,
    /// From the start of the run.
    pub valid: Duration,
}

/// The consecutive rows of one group of agents in its identities.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// Row in `Target::identities`.
    pub set: usize,
    /// The row of the group's first agent.
    pub first: usize,
    /// How many rows the group has; agents beyond share them in turn.
    pub count: usize,
    /// `None` where identities are issued.
    pub table: Option<Arc<IdentityTable>>,
}

impl Rows {
    /// The row of agent `index`.
    #[must_use]
    pub fn row(&self, index: u64) -> usize {
        let turn = index % self.count.max(1) as u64;
        self.first + usize::try_from(turn).unwrap_or_default()
    }

    /// What the column holds for agent `index`; `None` if there is no such column.
    #[must_use]
    pub fn value(&self, index: u64, column: &str) -> Option<&str> {
        self.table.as_ref()?.value(self.row(index), column)
    }
}

impl IdentityTable {
    /// What stands in a row under a column.
    #[must_use]
    pub fn value(&self, row: usize, column: &str) -> Option<&str> {
        let place = self.columns.iter().position(|name| name == column)?;
        Some(self.rows.get(row)?.get(place)?)
    }
}

impl fmt::Debug for IdentityTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("IdentityTable")
            .field("file", &self.file)
            .field("columns", &self.columns)
            .field("rows", &self.rows.len())
            .finish()
    }
}

impl IdentitySet {
    pub(super) fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        if let IdentitySource::Issue(issue) = &mut self.source
            && let Some((certificate, key)) = &mut issue.authority
        {
            each(certificate);
            each(key);
        }
    }
}
