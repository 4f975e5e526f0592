//! The data: one SQLite in memory, its columns and values told in PostgreSQL's types.

use pgwire::api::Type;
use rusqlite::types::Value;
use rusqlite::{Connection, Statement, params_from_iter};
use std::sync::{Mutex, MutexGuard};

/// A column of an answer.
#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    pub of: Type,
}

/// What a statement gave.
#[derive(Debug)]
pub enum Answer {
    Rows {
        columns: Vec<Column>,
        rows: Vec<Vec<Value>>,
    },
    /// Rows that it touched.
    Done(usize),
}

/// The database.
pub struct Store {
    connection: Mutex<Connection>,
}

impl Store {
    /// An empty database.
    ///
    /// # Errors
    /// If SQLite refuses.
    pub fn open() -> Result<Store, rusqlite::Error> {
        Ok(Store {
            connection: Mutex::new(Connection::open_in_memory()?),
        })
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection
            .lock()
            .expect("nobody panics while holding it")
    }

    /// The columns that the statement will give; none for one that gives no rows.
    ///
    /// # Errors
    /// If SQLite does not understand it.
    pub fn columns(&self, sql: &str) -> Result<Vec<Column>, rusqlite::Error> {
        Ok(columns(&*self.connection().prepare_cached(sql)?))
    }

    /// How many parameters the statement has.
    ///
    /// # Errors
    /// If SQLite does not understand it.
    pub fn parameter_count(&self, sql: &str) -> Result<usize, rusqlite::Error> {
        Ok(self.connection().prepare_cached(sql)?.parameter_count())
    }

    /// Runs one statement with its parameters in the order of their first use.
    ///
    /// # Errors
    /// If SQLite does not understand it or can't do it.
    pub fn run(&self, sql: &str, parameters: Vec<Value>) -> Result<Answer, rusqlite::Error> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(sql)?;
        if statement.column_count() == 0 {
            return statement
                .execute(params_from_iter(parameters))
                .map(Answer::Done);
        }
        let columns = columns(&statement);
        let mut rows = Vec::new();
        let mut found = statement.query(params_from_iter(parameters))?;
        while let Some(row) = found.next()? {
            let values = (0..columns.len()).map(|index| row.get::<_, Value>(index));
            rows.push(values.collect::<Result<_, _>>()?);
        }
        Ok(Answer::Rows { columns, rows })
    }

    /// Runs statements separated by semicolons, without parameters; gives the answer to the last one.
    ///
    /// # Errors
    /// If SQLite does not understand one or can't do it; those before it have been done.
    pub fn run_all(&self, sql: &str) -> Result<Answer, rusqlite::Error> {
        let mut answer = Answer::Done(0);
        for statement in sql
            .split(';')
            .map(str::trim)
            .filter(|statement| !statement.is_empty())
        {
            answer = self.run(statement, Vec::new())?;
        }
        Ok(answer)
    }
}

fn columns(statement: &Statement<'_>) -> Vec<Column> {
    let of = |declared: Option<&str>| match declared {
        Some("BIGINT") => Type::INT8,
        _ => Type::TEXT,
    };
    statement
        .columns()
        .map(|column| Column {
            name: column.name().to_owned(),
            of: of(column.decl_type()),
        })
        .collect()
}
