//! Rows of a database or a console as series: a number is a value, anything else in its row is a label.
//!
//! Columns are found by name: PgBouncer puts new ones in between from version to version.

use super::prometheus::Series;

/// An answer: the names of its columns, and rows of as many texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Option<String>>>,
}

/// Columns of a console that are names whatever they look like.
const NAMES: [&str; 7] = [
    "database",
    "user",
    "name",
    "host",
    "port",
    "force_user",
    "pool_mode",
];

impl Table {
    /// The numbers of all rows by their columns' names, `names` being labels whatever they look like.
    #[must_use]
    pub fn series(&self, names: &[&str]) -> Vec<Series> {
        self.prefixed("", names)
    }

    fn prefixed(&self, prefix: &str, names: &[&str]) -> Vec<Series> {
        let mut series = Vec::new();
        for row in &self.rows {
            let cells = self.columns.iter().zip(row);
            let texts = cells.filter_map(|(name, text)| Some((name.as_str(), text.as_deref()?)));
            let (numbers, labels): (Vec<_>, Vec<_>) = texts
                .partition(|(name, text)| !names.contains(name) && text.parse::<f64>().is_ok());
            let mut labels: Vec<(String, String)> = labels
                .into_iter()
                .map(|(name, text)| (name.to_owned(), text.to_owned()))
                .collect();
            labels.sort();
            for (name, text) in numbers {
                series.extend(text.parse().ok().map(|value| Series {
                    name: format!("{prefix}{name}"),
                    labels: labels.clone(),
                    value,
                }));
            }
        }
        series
    }

    fn text<'t>(&self, row: &'t [Option<String>], column: &str) -> Option<&'t str> {
        let place = self.columns.iter().position(|name| name == column)?;
        row.get(place)?.as_deref()
    }

    fn number(&self, row: &[Option<String>], column: &str) -> Option<f64> {
        self.text(row, column)?.parse().ok()
    }
}

/// What the three tables of a console say together: every number of `SHOW STATS` and `SHOW POOLS` under `stats_` and `pools_`;
/// `pools_wait_us`, which `SHOW POOLS` splits over two columns; `pools_size`, which stands with the pool's database.
#[must_use]
pub fn console(pools: &Table, stats: &Table, databases: &Table) -> Vec<Series> {
    let mut series = stats.prefixed("stats_", &NAMES);
    series.extend(pools.prefixed("pools_", &NAMES));
    for row in &pools.rows {
        let name = |column: &str| {
            let text = pools.text(row, column).unwrap_or_default();
            (column.to_owned(), text.to_owned())
        };
        let labels = vec![name("database"), name("user")];
        let waited_us = pools
            .number(row, "maxwait")
            .map(|seconds| seconds * 1e6 + pools.number(row, "maxwait_us").unwrap_or(0.0));
        let database = pools.text(row, "database");
        let size = databases
            .rows
            .iter()
            .find(|of| databases.text(of, "name") == database)
            .and_then(|of| databases.number(of, "pool_size"));
        for (name, value) in [("pools_wait_us", waited_us), ("pools_size", size)] {
            series.extend(value.map(|value| Series {
                name: name.to_owned(),
                labels: labels.clone(),
                value,
            }));
        }
    }
    series
}
