//! The folder of a run: its name, and writing into it so that a reader never sees half a file.

use crate::net::secrets::Redactor;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// `runs/ID/` and what is written there.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    id: String,
}

/// Something in the run's folder could not be written.
#[derive(Debug, thiserror::Error)]
#[error("can't write {path}: {source}; give another place with --out, or make room")]
pub struct WriteFailed {
    path: PathBuf,
    source: io::Error,
}

impl Folder {
    /// Makes a new folder below `runs`, named by the time (UTC) and four random letters.
    ///
    /// # Errors
    /// If it can't be made.
    pub fn create(runs: &Path) -> Result<Folder, WriteFailed> {
        let id = format!("{}-{}", utc_compact(SystemTime::now()), random_letters(4));
        let path = runs.join(&id);
        fs::create_dir_all(&path).map_err(|source| WriteFailed {
            path: path.clone(),
            source,
        })?;
        Ok(Folder { path, id })
    }

    /// The run's id, the folder's name.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a text whole, secrets redacted: first beside the place, then renamed into it.
    ///
    /// # Errors
    /// If the disk is full or the folder gone.
    pub fn write(&self, name: &str, text: &str, redactor: &Redactor) -> Result<(), WriteFailed> {
        let path = self.path.join(name);
        let beside = path.with_added_extension("part");
        let written = fs::File::create(&beside).and_then(|mut file| {
            file.write_all(redactor.redact(text).as_bytes())?;
            file.sync_data()
        });
        written
            .and_then(|()| fs::rename(&beside, &path))
            .map_err(|source| {
                // The half-written part is of no use to anybody; the error that is told is the one that matters.
                let _ = fs::remove_file(&beside);
                WriteFailed { path, source }
            })
    }

    /// Copies the files that the run was made from into `inputs/`, secrets redacted.
    ///
    /// # Errors
    /// If one can't be read or written.
    pub fn keep_inputs(&self, files: &[PathBuf], redactor: &Redactor) -> Result<(), WriteFailed> {
        let inputs = self.path.join("inputs");
        fs::create_dir_all(&inputs).map_err(|source| WriteFailed {
            path: inputs.clone(),
            source,
        })?;
        for file in files {
            let name = file
                .file_name()
                .map_or_else(|| "input".into(), |name| name.to_string_lossy());
            let text = fs::read_to_string(file).map_err(|source| WriteFailed {
                path: file.clone(),
                source,
            })?;
            self.write(&format!("inputs/{name}"), &text, redactor)?;
        }
        Ok(())
    }
}

/// `2026-11-29T21:05:00Z`
#[must_use]
pub fn utc_text(time: SystemTime) -> String {
    let unix_seconds = time
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (year, month, day) = civil_from_days(unix_seconds / 86_400);
    let second = unix_seconds % 86_400;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

fn utc_compact(time: SystemTime) -> String {
    utc_text(time)
        .replace(['-', ':', 'Z'], "")
        .replace('T', "-")
}

/// Days since 1970-01-01 to year, month, day in the Gregorian calendar (Howard Hinnant, "chrono-compatible low-level date
/// algorithms", 2013: civil_from_days, for days after the epoch).
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

/// Lower-case letters from the operating system's randomness.
#[must_use]
pub fn random_letters(count: usize) -> String {
    let mut bytes = vec![0_u8; count];
    getrandom::fill(&mut bytes).expect("Linux gives random bytes to every process");
    bytes
        .iter()
        .map(|byte| char::from(b'a' + byte % 26))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{UNIX_EPOCH, utc_text};
    use std::time::Duration;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let utc_text = |seconds| utc_text(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(utc_text(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc_text(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(utc_text(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc_text(1_796_000_000), "2026-11-30T00:53:20Z");
    }
}
