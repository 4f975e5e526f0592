//! Every statement that the gateway sends to its database; they are the same for PostgreSQL and SQLite.

use super::pool::{DatabaseError, Lease, Parameter};
use crate::lab::settings::Settings;
use Parameter::{Number, Text};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS revoked (serial TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS commands (
    id TEXT PRIMARY KEY, serial TEXT NOT NULL, action TEXT NOT NULL, state TEXT NOT NULL, expires_ms BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS bikes (id TEXT PRIMARY KEY, trip TEXT NOT NULL, station TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS trips (id TEXT PRIMARY KEY, bike TEXT NOT NULL, state TEXT NOT NULL, opens_ms BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS riders (email TEXT PRIMARY KEY, password TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS bikes_by_station ON bikes (station, id);
CREATE INDEX IF NOT EXISTS bikes_by_trip ON bikes (trip);
CREATE TABLE IF NOT EXISTS stations (id TEXT PRIMARY KEY, refreshes BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS returns (id TEXT PRIMARY KEY, trip TEXT NOT NULL, station TEXT NOT NULL, applied BIGINT NOT NULL)";

/// What became of an attempt to unlock a bike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unlock {
    /// The trip has the bike now; its lock opens.
    Opening,
    /// The trip was there before, and has ended.
    Ended,
    /// Somebody else has it, or there is no such bike.
    Taken,
}

/// A return as it is stored, with the state of its trip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Returned {
    pub trip: String,
    pub state: String,
    /// How often it was booked.
    pub applied: i64,
}

/// Makes the tables, the bikes spread evenly over their stations, and the riders' accounts.
pub async fn create(lease: &mut Lease, settings: &Settings) -> Result<(), DatabaseError> {
    lease.batch(TABLES).await?;
    let stations = settings.stations;
    let bike = |number: u64| {
        let station = 1 + (number - 1) % stations;
        format!("('bike-{number:06}', '', 'station-{station}')")
    };
    insert(
        lease,
        "bikes (id, trip, station)",
        "id",
        settings.bikes,
        bike,
    )
    .await?;
    let rider = |number: u64| format!("('rider-{number}@bikes.example', 'pass-{number}')");
    let accounts = settings.accounts;
    insert(lease, "riders (email, password)", "email", accounts, rider).await
}

/// Inserts the rows 1 to `count`, unless they are there.
async fn insert(
    lease: &mut Lease,
    table: &str,
    key: &str,
    count: u64,
    row: impl Fn(u64) -> String,
) -> Result<(), DatabaseError> {
    let numbers: Vec<u64> = (1..=count).collect();
    for some in numbers.chunks(1000) {
        let rows: Vec<String> = some.iter().map(|number| row(*number)).collect();
        let rows = rows.join(", ");
        lease
            .batch(&format!(
                "INSERT INTO {table} VALUES {rows} ON CONFLICT ({key}) DO NOTHING"
            ))
            .await?;
    }
    Ok(())
}

/// The password of an account.
pub async fn password(lease: &mut Lease, email: &str) -> Result<Option<String>, DatabaseError> {
    let sql = "SELECT password FROM riders WHERE email = $1";
    let rows = lease.rows(sql, &[Text(email)]).await?;
    Ok(rows.first().map(|row| row.get(0)))
}

/// Whether the hub is revoked.
pub async fn is_revoked(lease: &mut Lease, serial: &str) -> Result<bool, DatabaseError> {
    let rows = lease
        .rows(
            "SELECT serial FROM revoked WHERE serial = $1",
            &[Text(serial)],
        )
        .await?;
    Ok(!rows.is_empty())
}

/// Every revoked hub.
pub async fn revoked(lease: &mut Lease) -> Result<Vec<String>, DatabaseError> {
    let rows = lease.rows("SELECT serial FROM revoked", &[]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Stores a command as accepted; false if its id is there already.
pub async fn insert_command(
    lease: &mut Lease,
    id: &str,
    serial: &str,
    action: &str,
    ttl: Duration,
) -> Result<bool, DatabaseError> {
    let expires_ms = unix_ms(SystemTime::now() + ttl);
    let rows = lease
        .execute(
            "INSERT INTO commands (id, serial, action, state, expires_ms) VALUES ($1, $2, $3, 'accepted', $4)
             ON CONFLICT (id) DO NOTHING",
            &[Text(id), Text(serial), Text(action), Number(expires_ms)],
        )
        .await?;
    Ok(rows == 1)
}

/// The state of a command as stored.
pub async fn command_state(lease: &mut Lease, id: &str) -> Result<Option<String>, DatabaseError> {
    let rows = lease
        .rows("SELECT state FROM commands WHERE id = $1", &[Text(id)])
        .await?;
    Ok(rows.first().map(|row| row.get(0)))
}

/// Notes a command's new state.
pub async fn mark_command(lease: &mut Lease, id: &str, state: &str) -> Result<(), DatabaseError> {
    lease
        .execute(
            "UPDATE commands SET state = $1 WHERE id = $2",
            &[Text(state), Text(id)],
        )
        .await
        .map(|_| ())
}

/// Up to five free bikes from the given one on, in the order of their ids.
pub async fn free_bikes(lease: &mut Lease, from: &str) -> Result<Vec<String>, DatabaseError> {
    let sql = "SELECT id FROM bikes WHERE trip = '' AND id >= $1 ORDER BY id LIMIT 5";
    let rows = lease.rows(sql, &[Text(from)]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// The same at one station.
pub async fn free_bikes_at(
    lease: &mut Lease,
    station: &str,
    from: &str,
) -> Result<Vec<String>, DatabaseError> {
    let sql =
        "SELECT id FROM bikes WHERE station = $1 AND trip = '' AND id >= $2 ORDER BY id LIMIT 5";
    let rows = lease.rows(sql, &[Text(station), Text(from)]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Gives the bike to the trip. Asked again for the same trip, it answers the same.
pub async fn unlock(
    lease: &mut Lease,
    trip: &str,
    bike: &str,
    opens_in: Duration,
) -> Result<Unlock, DatabaseError> {
    let insert = "INSERT INTO trips (id, bike, state, opens_ms) VALUES ($1, $2, 'starting', $3) ON CONFLICT (id) DO NOTHING";
    let opens = Number(unix_ms(SystemTime::now() + opens_in));
    if lease
        .execute(insert, &[Text(trip), Text(bike), opens])
        .await?
        == 0
    {
        match trip_state(lease, trip).await?.as_deref() {
            Some("refused") => return Ok(Unlock::Taken),
            Some("ended") => return Ok(Unlock::Ended),
            // An earlier attempt may have ended between the two statements: the second one is done again.
            _ => {}
        }
    }
    let take = "UPDATE bikes SET trip = $1 WHERE id = $2 AND (trip = '' OR trip = $1)";
    if lease.execute(take, &[Text(trip), Text(bike)]).await? == 1 {
        return Ok(Unlock::Opening);
    }
    lease
        .execute(
            "UPDATE trips SET state = 'refused' WHERE id = $1",
            &[Text(trip)],
        )
        .await?;
    Ok(Unlock::Taken)
}

/// The state of a trip: it has started when its lock has had the time to open.
pub async fn trip_state(lease: &mut Lease, trip: &str) -> Result<Option<String>, DatabaseError> {
    let sql = "SELECT state, opens_ms FROM trips WHERE id = $1";
    let rows = lease.rows(sql, &[Text(trip)]).await?;
    Ok(rows.first().map(|row| {
        let (state, opens): (String, i64) = (row.get(0), row.get(1));
        if state == "starting" && unix_ms(SystemTime::now()) >= opens {
            "started".to_owned()
        } else {
            state
        }
    }))
}

fn unix_ms(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Ends the trip and frees its bike; false if there is no such trip.
pub async fn end_trip(lease: &mut Lease, trip: &str) -> Result<bool, DatabaseError> {
    let ended = lease
        .execute(
            "UPDATE trips SET state = 'ended' WHERE id = $1",
            &[Text(trip)],
        )
        .await?;
    if ended == 0 {
        return Ok(false);
    }
    lease
        .execute("UPDATE bikes SET trip = '' WHERE trip = $1", &[Text(trip)])
        .await?;
    Ok(true)
}

/// Whether a bike may be ridden: asked for every candidate by the eligibility check of 2026-07-18.
pub async fn is_rideable(lease: &mut Lease, bike: &str) -> Result<bool, DatabaseError> {
    let rows = lease
        .rows("SELECT id FROM bikes WHERE id = $1", &[Text(bike)])
        .await?;
    Ok(!rows.is_empty())
}

/// Notes that the station is there.
pub async fn refresh_station(lease: &mut Lease, station: &str) -> Result<(), DatabaseError> {
    let sql = "INSERT INTO stations (id, refreshes) VALUES ($1, 1)
         ON CONFLICT (id) DO UPDATE SET refreshes = stations.refreshes + 1";
    lease.execute(sql, &[Text(station)]).await.map(|_| ())
}

/// Stores a return; false if its id is there already.
pub async fn insert_return(
    lease: &mut Lease,
    (id, trip, station): (&str, &str, &str),
) -> Result<bool, DatabaseError> {
    let sql = "INSERT INTO returns (id, trip, station, applied) VALUES ($1, $2, $3, 0)
         ON CONFLICT (id) DO NOTHING";
    let parameters = [Text(id), Text(trip), Text(station)];
    Ok(lease.execute(sql, &parameters).await? == 1)
}

/// Counts one more booking of the return.
pub async fn book_return(lease: &mut Lease, id: &str) -> Result<(), DatabaseError> {
    let sql = "UPDATE returns SET applied = applied + 1 WHERE id = $1";
    lease.execute(sql, &[Text(id)]).await.map(|_| ())
}

/// A return and its trip.
pub async fn returned(lease: &mut Lease, id: &str) -> Result<Option<Returned>, DatabaseError> {
    let rows = lease
        .rows(
            "SELECT trip, applied FROM returns WHERE id = $1",
            &[Text(id)],
        )
        .await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let (trip, applied): (String, i64) = (row.get(0), row.get(1));
    let state = trip_state(lease, &trip).await?;
    Ok(Some(Returned {
        state: state.unwrap_or_else(|| "unknown".to_owned()),
        trip,
        applied,
    }))
}
