//! Collects what is wrong while files are read, so that all of it is shown at once.

use super::problem::{Problem, Problems, Spot};
use super::shape::Shapes;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// A place in one of the files of a run. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub file: usize,
    pub line: usize,
    pub column: usize,
}

/// The files read so far and what was wrong with them.
#[derive(Debug, Default)]
pub(super) struct Log {
    files: RefCell<Vec<Source>>,
    found: RefCell<Vec<(Place, Problem)>>,
    pub shapes: Shapes,
}

#[derive(Debug)]
struct Source {
    path: PathBuf,
    lines: Vec<String>,
}

impl Log {
    /// Makes a file known; its text may be set later.
    pub fn open(&self, path: &Path) -> usize {
        let mut files = self.files.borrow_mut();
        files.push(Source {
            path: path.to_owned(),
            lines: Vec::new(),
        });
        files.len() - 1
    }

    /// The text of a file, for showing its lines.
    pub fn set_text(&self, file: usize, text: &str) {
        let unified = text.replace("\r\n", "\n").replace('\r', "\n");
        self.files.borrow_mut()[file].lines = unified.split('\n').map(str::to_owned).collect();
    }

    /// The path of a file, as it was opened.
    pub fn path(&self, file: usize) -> PathBuf {
        self.files.borrow()[file].path.clone()
    }

    /// The text of a line, empty past the end.
    pub fn line(&self, place: Place) -> String {
        let files = self.files.borrow();
        files[place.file]
            .lines
            .get(place.line.saturating_sub(1))
            .cloned()
            .unwrap_or_default()
    }

    /// Something is wrong at a place. `path` is the path inside the file.
    pub fn wrong(&self, place: Place, path: &str, message: String, help: Option<String>) {
        let file = self.files.borrow()[place.file].path.clone();
        let spot = Some(Spot {
            line: place.line,
            column: place.column,
            text: self.line(place),
        });
        let problem = Problem {
            path: path.to_owned(),
            message,
            file,
            spot,
            help,
        };
        self.found.borrow_mut().push((place, problem));
    }

    /// Something is wrong with a file as a whole.
    pub fn wrong_file(&self, file: usize, message: &str, help: Option<String>) {
        let problem = Problem::of_file(&self.files.borrow()[file].path, message, help);
        self.found.borrow_mut().push((
            Place {
                file,
                line: 0,
                column: 0,
            },
            problem,
        ));
    }

    /// `file:line:column`
    pub fn text_of(&self, place: Place) -> String {
        let files = self.files.borrow();
        format!(
            "{}:{}:{}",
            files[place.file].path.display(),
            place.line,
            place.column
        )
    }

    /// Whether nothing was wrong so far.
    pub fn is_clean(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// Whether nothing was wrong with this file so far.
    pub fn is_clean_in(&self, file: usize) -> bool {
        self.found
            .borrow()
            .iter()
            .all(|(place, _)| place.file != file)
    }

    /// Everything found, by file and place.
    pub fn into_problems(self) -> Problems {
        let mut found = self.found.into_inner();
        found.sort_by_key(|(place, _)| *place);
        let mut problems = Problems::default();
        found
            .into_iter()
            .for_each(|(_, problem)| problems.add(problem));
        problems
    }
}
