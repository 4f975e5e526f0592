//! CSV files that other files name, with a line of names at the top.

use super::reader::At;
use super::words;

/// Every cell of a file, as text.
pub(super) struct Table {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// Reads the file whose path stands at `at`, relative to the file in which it stands.
pub(super) fn read(at: &At<'_>) -> Option<Table> {
    let path = at.beside(at.text()?);
    let wrong = |error: &dyn std::fmt::Display| {
        at.wrong(
            format!("can't read {}: {error}", path.display()),
            "name a CSV file whose first line names its columns; the path is relative to this file",
        );
    };
    let mut reader = match csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_path(&path)
    {
        Ok(reader) => reader,
        Err(error) => {
            wrong(&error);
            return None;
        }
    };
    let texts = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect::<Vec<_>>();
    let columns = reader.headers().map(texts);
    let rows: Result<Vec<Vec<String>>, csv::Error> = reader
        .records()
        .map(|record| record.map(|record| texts(&record)))
        .collect();
    match (columns, rows) {
        (Ok(columns), Ok(rows)) if !rows.is_empty() => Some(Table { columns, rows }),
        (Ok(_), Ok(_)) => {
            wrong(&"there is no line below that of the names");
            None
        }
        (Err(error), _) | (_, Err(error)) => {
            wrong(&error);
            None
        }
    }
}

impl Table {
    /// The cells of the column whose name stands at `at`.
    pub fn column(&self, at: &At<'_>) -> Option<Vec<String>> {
        let name = at.text()?;
        let known = || self.columns.iter().map(String::as_str);
        let Some(column) = known().position(|known| known == name) else {
            let help = words::nearest(name, known()).map_or_else(
                || format!("known: {}", words::listed(known())),
                |near| format!("did you mean `{near}`?"),
            );
            at.wrong(format!("the file has no column `{name}`"), help);
            return None;
        };
        let cells = self.rows.iter().map(|row| row[column].clone());
        Some(cells.collect())
    }
}
