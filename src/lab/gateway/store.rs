//! Every statement that the gateway sends to its database; they are the same for PostgreSQL and SQLite.

use super::pool::{DatabaseError, Lease, Parameter};
use Parameter::{Number, Text};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS revoked (serial TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS commands (
    id TEXT PRIMARY KEY, serial TEXT NOT NULL, action TEXT NOT NULL, state TEXT NOT NULL, expires_ms BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS bikes (id TEXT PRIMARY KEY, trip TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS trips (id TEXT PRIMARY KEY, bike TEXT NOT NULL, state TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS bikes_by_trip ON bikes (trip)";

/// What became of an attempt to unlock a bike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unlock {
    Started,
    /// Somebody else has it, or there is no such bike.
    Taken,
}

/// Makes the tables, and so many bikes.
pub async fn create(lease: &mut Lease, bikes: u64) -> Result<(), DatabaseError> {
    lease.batch(TABLES).await?;
    let numbers: Vec<u64> = (1..=bikes).collect();
    for some in numbers.chunks(1000) {
        let rows: Vec<String> = some
            .iter()
            .map(|number| format!("('bike-{number:06}', '')"))
            .collect();
        lease
            .batch(&format!(
                "INSERT INTO bikes (id, trip) VALUES {} ON CONFLICT (id) DO NOTHING",
                rows.join(", ")
            ))
            .await?;
    }
    Ok(())
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
    let expires = SystemTime::now() + ttl;
    let expires_ms = expires
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis());
    let rows = lease
        .execute(
            "INSERT INTO commands (id, serial, action, state, expires_ms) VALUES ($1, $2, $3, 'accepted', $4)
             ON CONFLICT (id) DO NOTHING",
            &[Text(id), Text(serial), Text(action), Number(i64::try_from(expires_ms).unwrap_or(i64::MAX))],
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

/// Gives the bike to the trip. Asked again for the same trip, it answers the same.
pub async fn unlock(lease: &mut Lease, trip: &str, bike: &str) -> Result<Unlock, DatabaseError> {
    let insert = "INSERT INTO trips (id, bike, state) VALUES ($1, $2, 'started') ON CONFLICT (id) DO NOTHING";
    if lease.execute(insert, &[Text(trip), Text(bike)]).await? == 0 {
        match trip_state(lease, trip).await?.as_deref() {
            Some("refused") => return Ok(Unlock::Taken),
            Some("ended") => return Ok(Unlock::Started),
            // An earlier attempt may have ended between the two statements: the second one is done again.
            _ => {}
        }
    }
    let take = "UPDATE bikes SET trip = $1 WHERE id = $2 AND (trip = '' OR trip = $1)";
    if lease.execute(take, &[Text(trip), Text(bike)]).await? == 1 {
        return Ok(Unlock::Started);
    }
    lease
        .execute(
            "UPDATE trips SET state = 'refused' WHERE id = $1",
            &[Text(trip)],
        )
        .await?;
    Ok(Unlock::Taken)
}

/// The state of a trip.
pub async fn trip_state(lease: &mut Lease, trip: &str) -> Result<Option<String>, DatabaseError> {
    let rows = lease
        .rows("SELECT state FROM trips WHERE id = $1", &[Text(trip)])
        .await?;
    Ok(rows.first().map(|row| row.get(0)))
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
