//! What is wrong with a file, where, and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

/// A line up to this length, in characters, is shown whole; of a longer one, so much before and after the column.
const SHOWN_WHOLE: usize = 160;
const SHOWN_BEFORE: usize = 100;
const SHOWN_AFTER: usize = 60;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The path inside the file, `riders.commuters.retry`; empty for the file as a whole.
    pub path: String,
    /// What is wrong.
    pub message: String,
    pub file: PathBuf,
    /// `None` if the file could not be read at all.
    pub spot: Option<Spot>,
    /// What to do about it.
    pub help: Option<String>,
}

/// A place inside a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The text of the line.
    pub text: String,
}

impl Problem {
    /// A problem of a file as a whole.
    #[must_use]
    pub fn of_file(file: &Path, message: &str, help: Option<String>) -> Problem {
        Problem {
            path: String::new(),
            message: message.to_owned(),
            file: file.to_owned(),
            spot: None,
            help,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("error: ")?;
        if !self.path.is_empty() {
            write!(formatter, "{}: ", self.path)?;
        }
        writeln!(formatter, "{}", self.message)?;
        let file = self.file.display();
        let mut margin = " ".to_owned();
        match &self.spot {
            None => writeln!(formatter, "  --> {file}")?,
            Some(spot) => {
                margin = " ".repeat(spot.line.to_string().len());
                writeln!(
                    formatter,
                    "{margin} --> {file}:{}:{}",
                    spot.line, spot.column
                )?;
                let (text, before) = spot.excerpt();
                writeln!(
                    formatter,
                    "{margin} |\n{} | {text}\n{margin} | {before}^",
                    spot.line
                )?;
            }
        }
        if let Some(help) = &self.help {
            writeln!(formatter, "{margin}  = help: {help}")?;
        }
        Ok(())
    }
}

impl Spot {
    /// The part of the line to show, and what stands below it before the caret (tabs kept, so that it lines up).
    fn excerpt(&self) -> (String, String) {
        let characters: Vec<char> = self
            .text
            .chars()
            .map(|c| {
                if c.is_control() && c != '\t' {
                    '\u{b7}'
                } else {
                    c
                }
            })
            .collect();
        let column = self.column.saturating_sub(1).min(characters.len());
        let is_short = characters.len() <= SHOWN_WHOLE;
        let first = if is_short {
            0
        } else {
            column.saturating_sub(SHOWN_BEFORE)
        };
        let last = if is_short {
            characters.len()
        } else {
            characters.len().min(column + SHOWN_AFTER)
        };
        let before = characters[first..column]
            .iter()
            .map(|c| if *c == '\t' { '\t' } else { ' ' });
        let lead = if first > 0 { "…" } else { "" };
        let trail = if last < characters.len() { "…" } else { "" };
        let shown: String = characters[first..last].iter().collect();
        (
            format!("{lead}{shown}{trail}"),
            lead.chars().map(|_| ' ').chain(before).collect(),
        )
    }
}

/// Everything that is wrong, in the order of the files and their lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problems {
    list: Vec<Problem>,
}

impl Problems {
    /// One more.
    pub fn add(&mut self, problem: Problem) {
        if !self.list.contains(&problem) {
            self.list.push(problem);
        }
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// One by one.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.list.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.list.iter().enumerate() {
            if number > 0 {
                writeln!(formatter)?;
            }
            problem.fmt(formatter)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
