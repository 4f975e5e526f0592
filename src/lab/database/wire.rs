//! The PostgreSQL wire protocol in front of the data, and the time that every query takes.

use super::sqlite::{Answer, Column, Store};
use async_trait::async_trait;
use futures::{Sink, stream};
use pgwire::api::portal::{Format, Portal};
use pgwire::api::query::{ExtendedQueryHandler, SimpleQueryHandler};
use pgwire::api::results::{DataRowEncoder, FieldInfo, QueryResponse, Response, Tag};
use pgwire::api::stmt::QueryParser;
use pgwire::api::store::PortalStore;
use pgwire::api::{ClientInfo, ClientPortalStore, PgWireServerHandlers, Type};
use pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use rusqlite::types::Value;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// What a connection is served with.
pub struct Handlers {
    engine: Arc<Engine>,
}

impl Handlers {
    /// Serves the store; each query takes `service` and at most `parallelism` are served at the same time.
    pub fn new(store: Store, service: Duration, parallelism: usize) -> Handlers {
        let store = Arc::new(store);
        let places = Semaphore::new(parallelism.min(Semaphore::MAX_PERMITS));
        Handlers {
            engine: Arc::new(Engine {
                parser: Arc::new(Parser {
                    store: Arc::clone(&store),
                }),
                store,
                service,
                places,
            }),
        }
    }
}

impl PgWireServerHandlers for Handlers {
    fn simple_query_handler(&self) -> Arc<impl SimpleQueryHandler> {
        Arc::clone(&self.engine)
    }

    fn extended_query_handler(&self) -> Arc<impl ExtendedQueryHandler> {
        Arc::clone(&self.engine)
    }
}

struct Engine {
    store: Arc<Store>,
    parser: Arc<Parser>,
    service: Duration,
    places: Semaphore,
}

impl Engine {
    async fn serve(
        &self,
        work: impl FnOnce(&Store) -> Result<Answer, rusqlite::Error>,
    ) -> PgWireResult<Answer> {
        let _place = self
            .places
            .acquire()
            .await
            .map_err(|closed| PgWireError::ApiError(Box::new(closed)))?;
        if !self.service.is_zero() {
            tokio::time::sleep(self.service).await;
        }
        work(&self.store).map_err(refused)
    }
}

/// All sessions share one connection of SQLite, on which a transaction of one would be everybody's: each statement stands for itself, and
/// the words for begin and end are taken without an effect.
fn transaction(query: &str) -> Option<Response> {
    let word = query.trim().trim_end_matches(';').to_ascii_uppercase();
    match word.as_str() {
        "BEGIN" => Some(Response::TransactionStart(Tag::new(&word))),
        "COMMIT" | "ROLLBACK" => Some(Response::TransactionEnd(Tag::new(&word))),
        _ => None,
    }
}

/// SQLite's complaint in PostgreSQL's form.
fn refused(error: rusqlite::Error) -> PgWireError {
    PgWireError::UserError(Box::new(ErrorInfo::new(
        "ERROR".to_owned(),
        "XX000".to_owned(),
        error.to_string(),
    )))
}

#[async_trait]
impl SimpleQueryHandler for Engine {
    async fn do_query<C>(&self, _client: &mut C, query: &str) -> PgWireResult<Vec<Response>>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        if let Some(response) = transaction(query) {
            return Ok(vec![response]);
        }
        let answer = self.serve(|store| store.run_all(query)).await?;
        Ok(vec![response(answer, &Format::UnifiedText)?])
    }
}

#[async_trait]
impl ExtendedQueryHandler for Engine {
    type Statement = String;
    type QueryParser = Parser;

    fn query_parser(&self) -> Arc<Parser> {
        Arc::clone(&self.parser)
    }

    async fn do_query<C>(
        &self,
        _client: &mut C,
        portal: &Portal<String>,
        _most: usize,
    ) -> PgWireResult<Response>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = String>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let parameters = (0..portal.parameter_len())
            .map(|index| parameter(portal, index))
            .collect::<PgWireResult<_>>()?;
        let answer = self
            .serve(|store| store.run(&portal.statement.statement, parameters))
            .await?;
        response(answer, &portal.result_column_format)
    }
}

fn parameter(portal: &Portal<String>, index: usize) -> PgWireResult<Value> {
    let of = portal
        .statement
        .parameter_types
        .get(index)
        .cloned()
        .flatten()
        .unwrap_or(Type::TEXT);
    let value = if of == Type::INT8 {
        portal.parameter::<i64>(index, &of)?.map(Value::Integer)
    } else {
        portal.parameter::<String>(index, &of)?.map(Value::Text)
    };
    Ok(value.unwrap_or(Value::Null))
}

fn response(answer: Answer, format: &Format) -> PgWireResult<Response> {
    let (columns, rows) = match answer {
        Answer::Done(touched) => return Ok(Response::Execution(Tag::new("OK").with_rows(touched))),
        Answer::Rows { columns, rows } => (columns, rows),
    };
    let fields = Arc::new(fields(&columns, format));
    let mut encoder = DataRowEncoder::new(Arc::clone(&fields));
    let mut encoded = Vec::with_capacity(rows.len());
    for row in rows {
        for (value, column) in row.iter().zip(&columns) {
            match value {
                Value::Integer(number) if column.of == Type::INT8 => {
                    encoder.encode_field(number)?
                }
                Value::Integer(number) => encoder.encode_field(&number.to_string())?,
                Value::Real(number) => encoder.encode_field(&number.to_string())?,
                Value::Text(text) => encoder.encode_field(text)?,
                Value::Null | Value::Blob(_) => encoder.encode_field(&None::<String>)?,
            }
        }
        encoded.push(Ok(encoder.take_row()));
    }
    Ok(Response::Query(QueryResponse::new(
        fields,
        stream::iter(encoded),
    )))
}

fn fields(columns: &[Column], format: &Format) -> Vec<FieldInfo> {
    let field = |(index, column): (usize, &Column)| {
        FieldInfo::new(
            column.name.clone(),
            None,
            None,
            column.of.clone(),
            format.format_for(index),
        )
    };
    columns.iter().enumerate().map(field).collect()
}

/// Statements stay text; SQLite reads them when they run.
struct Parser {
    store: Arc<Store>,
}

#[async_trait]
impl QueryParser for Parser {
    type Statement = String;

    async fn parse_sql<C>(
        &self,
        _client: &C,
        sql: &str,
        _types: &[Option<Type>],
    ) -> PgWireResult<Option<String>>
    where
        C: ClientInfo + Unpin + Send + Sync,
    {
        Ok(Some(sql.to_owned()))
    }

    /// SQLite knows no types of parameters; as text they become what the column is.
    fn get_parameter_types(&self, statement: &String) -> PgWireResult<Vec<Type>> {
        let count = self.store.parameter_count(statement).map_err(refused)?;
        Ok(vec![Type::TEXT; count])
    }

    fn get_result_schema(
        &self,
        statement: &String,
        format: Option<&Format>,
    ) -> PgWireResult<Vec<FieldInfo>> {
        let columns = self.store.columns(statement).map_err(refused)?;
        Ok(fields(&columns, format.unwrap_or(&Format::UnifiedBinary)))
    }
}
