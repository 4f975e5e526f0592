//! The state directory of the user: what must outlive a run. `$XDG_STATE_HOME/rushhour`, else `~/.local/state/rushhour`.
//!
//! What lies in it is executed when faults are healed, so it belongs to the user alone: directories 0700, files 0600, and the
//! owner is checked before anything is read. One directory a run, `proxies/` for the proxies that are running, `identities/` for keys.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

const PROXIES: &str = "proxies";
const IDENTITIES: &str = "identities";
const IDENTITIES_LOCK: &str = "identities.lock";

/// A state directory whose owner has been checked.
#[derive(Debug, Clone)]
pub struct StateDirectory {
    base: PathBuf,
    root: PathBuf,
}

/// Why the state directory can't be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error(
        "neither XDG_STATE_HOME nor HOME is set: set one, faults can't be healed without a place for their undo"
    )]
    NoHome,
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "{} belongs to user {owner} or can be written by others (mode {mode:o}); nothing in it will be executed: \
         remove it, or give it to yourself with mode 0700 (files 0600)",
        path.display()
    )]
    NotOurs {
        path: PathBuf,
        owner: u32,
        mode: u32,
    },
    #[error("`{0}` can't be the id of a run: letters, digits, `-`, `_` and `.` only")]
    BadRunId(String),
}

impl From<StateError> for io::Error {
    fn from(error: StateError) -> io::Error {
        io::Error::other(error)
    }
}

impl StateDirectory {
    /// The user's, created if missing.
    ///
    /// # Errors
    /// If there is no home, it can't be created, or it is not ours alone.
    pub fn of_user() -> Result<StateDirectory, StateError> {
        let variable = |name| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let base = variable("XDG_STATE_HOME")
            .or_else(|| variable("HOME").map(|home| home.join(".local/state")))
            .ok_or(StateError::NoHome)?;
        StateDirectory::under(&base)
    }

    /// `base/rushhour`, created if missing.
    ///
    /// # Errors
    /// If it can't be created or is not ours alone.
    pub fn under(base: &Path) -> Result<StateDirectory, StateError> {
        let root = base.join("rushhour");
        create_private(&root)?;
        Ok(StateDirectory {
            base: base.to_owned(),
            root,
        })
    }

    /// A process of this program that uses the same directory.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("XDG_STATE_HOME", &self.base);
        command
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// The directory of a run, created if missing.
    ///
    /// # Errors
    /// If the id is no plain name, or the directory can't be created or is not ours alone.
    pub fn run(&self, run_id: &str) -> Result<PathBuf, StateError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if run_id.is_empty()
            || run_id.starts_with('.')
            || run_id == PROXIES
            || run_id == IDENTITIES
            || run_id == IDENTITIES_LOCK
            || !run_id.chars().all(plain)
        {
            return Err(StateError::BadRunId(run_id.to_owned()));
        }
        self.private(run_id)
    }

    /// Every run that left something here, oldest first by id.
    ///
    /// # Errors
    /// If the directory can't be read.
    pub fn run_ids(&self) -> Result<Vec<String>, StateError> {
        let mut ids: Vec<String> = names_in(&self.root)?
            .into_iter()
            .filter(|name| self.root.join(name).join("journal.jsonl").exists())
            .collect();
        ids.sort();
        Ok(ids)
    }

    /// The directory in which running proxies register.
    ///
    /// # Errors
    /// If it can't be created or is not ours alone.
    pub fn proxies(&self) -> Result<PathBuf, StateError> {
        self.private(PROXIES)
    }

    /// The directory of identities that are kept from run to run, each set of them by a name of its own.
    ///
    /// # Errors
    /// If it can't be created or is not ours alone.
    pub fn identities(&self, name: &str) -> Result<PathBuf, StateError> {
        self.private(IDENTITIES)?;
        self.private(&format!("{IDENTITIES}/{name}"))
    }

    /// Waits until no other process makes or reads kept identities; nobody else does as long as the file is held.
    ///
    /// # Errors
    /// If it can't be created, is not ours alone, or can't be locked.
    pub fn lock_identities(&self) -> Result<File, StateError> {
        let path = self.root.join(IDENTITIES_LOCK);
        let mut options = OpenOptions::new();
        let file = open_private(options.write(true).create(true), &path)?;
        file.lock().map_err(|source| at(&path, source))?;
        Ok(file)
    }

    fn private(&self, name: &str) -> Result<PathBuf, StateError> {
        let path = self.root.join(name);
        create_private(&path)?;
        Ok(path)
    }
}

/// The names in a directory.
pub fn names_in(path: &Path) -> Result<Vec<String>, StateError> {
    let entries = fs::read_dir(path).map_err(|source| at(path, source))?;
    Ok(entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect())
}

/// Reads a file that is ours alone.
pub fn read_private(path: &Path) -> Result<String, StateError> {
    let mut options = OpenOptions::new();
    let file = open_private(options.read(true), path)?;
    io::read_to_string(file).map_err(|source| at(path, source))
}

/// Opens a file, created with mode 0600 if the options say so, that must be ours alone.
pub fn open_private(options: &mut OpenOptions, path: &Path) -> Result<File, StateError> {
    let no_follow = nix::fcntl::OFlag::O_NOFOLLOW.bits();
    let file = options
        .mode(0o600)
        .custom_flags(no_follow)
        .open(path)
        .map_err(|source| at(path, source))?;
    check(path, &file.metadata().map_err(|source| at(path, source))?)?;
    Ok(file)
}

/// Writes a file of mode 0600 so that a reader sees all of it or nothing.
pub fn write_private(path: &Path, text: &str) -> Result<(), StateError> {
    let draft = path.with_extension("draft");
    let mut options = OpenOptions::new();
    let mut file = open_private(options.write(true).create(true).truncate(true), &draft)?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(|source| at(&draft, source))?;
    fs::rename(&draft, path).map_err(|source| at(path, source))
}

/// Makes the names in a directory durable.
pub fn sync_directory(path: &Path) -> Result<(), StateError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(|source| at(path, source))
}

/// The error of a place.
pub fn at(path: &Path, source: io::Error) -> StateError {
    StateError::Io {
        path: path.to_owned(),
        source,
    }
}

fn create_private(path: &Path) -> Result<(), StateError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| at(path, source))?;
    let found = fs::symlink_metadata(path).map_err(|source| at(path, source))?;
    let ours = found.uid() == rustix::process::geteuid().as_raw() && found.is_dir();
    if ours && found.mode() & 0o077 != 0 {
        // Made by hand or by another tool: nobody but us may look or write.
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))
            .map_err(|source| at(path, source))?;
        return Ok(());
    }
    check(path, &found)
}

fn check(path: &Path, found: &fs::Metadata) -> Result<(), StateError> {
    if found.uid() == rustix::process::geteuid().as_raw()
        && found.mode() & 0o022 == 0
        && !found.is_symlink()
    {
        return Ok(());
    }
    Err(StateError::NotOurs {
        path: path.to_owned(),
        owner: found.uid(),
        mode: found.mode() & 0o7777,
    })
}
