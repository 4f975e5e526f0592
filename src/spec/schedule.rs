//! Arrivals as files write them: `20/s for 2m`, `20/s to 240/s over 1m`.

use super::reader::At;
use super::units::{self, Wrong};
use crate::arrivals::{Piece, Schedule, Spread};
use crate::dice::Dice;
use crate::plan::quantity;
use std::time::Duration;

/// Keeps the streams of schedules apart from every other use of the seed.
const PURPOSE: u64 = 0x5c4e_d01e;

/// `arrivals:` of one group; `stream` names it, so that no two groups arrive alike.
pub(super) fn arrivals(
    at: &At<'_>,
    seed: u64,
    duration: Duration,
    stream: &str,
) -> Option<Schedule> {
    let mut fields = at.fields()?;
    let form = fields.one_of(&["even", "poisson"]);
    fields.finish(&["recorded"]);
    let (spread, at) = form?;
    let items = at.items()?;
    let pieces: Vec<Option<Piece>> = items.iter().map(read_piece).collect();
    let pieces: Vec<Piece> = pieces.into_iter().collect::<Option<_>>()?;
    let total: Duration = pieces.iter().map(|piece| piece.lasts).sum();
    // A duration that could not be read is zero, and has been reported.
    if total != duration && !duration.is_zero() {
        let difference = quantity::duration(total.abs_diff(duration));
        let help = if total > duration {
            format!("shorten it by {difference}, or make `duration` longer")
        } else {
            format!("add a piece of {difference}, such as `0/s for {difference}`")
        };
        at.wrong(
            format!(
                "the pieces last {}, and `duration` is {}",
                quantity::duration(total),
                quantity::duration(duration)
            ),
            help,
        );
        return None;
    }
    if pieces
        .iter()
        .all(|piece| piece.from_per_second == 0.0 && piece.to_per_second == 0.0)
    {
        at.wrong(
            "nobody arrives",
            "give at least one piece a rate above zero, or leave the group out",
        );
        return None;
    }
    let spread = match spread {
        "even" => Spread::Even,
        _ => {
            let index = stream.bytes().fold(0u64, |hash, byte| {
                hash.wrapping_mul(31).wrapping_add(u64::from(byte))
            });
            Spread::Poisson {
                seed: Dice::named(seed, PURPOSE, index).bits(),
            }
        }
    };
    Some(Schedule::new(spread, pieces))
}

fn read_piece(at: &At<'_>) -> Option<Piece> {
    let text = at.text()?;
    match piece(text) {
        Ok(piece) => Some(piece),
        Err(wrong) => {
            at.wrong(wrong.message, wrong.help.unwrap_or_default());
            None
        }
    }
}

/// One piece.
pub(super) fn piece(text: &str) -> Result<Piece, Wrong> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (from, to, lasts) = match words.as_slice() {
        [rate, "for", lasts] => (*rate, *rate, *lasts),
        [from, "to", to, "over", lasts] => (*from, *to, *lasts),
        _ => {
            return Err(Wrong::new(
                format!("`{text}` is no piece of a schedule"),
                "write `20/s for 2m`, or `20/s to 240/s over 1m`",
            ));
        }
    };
    let piece = Piece {
        from_per_second: units::rate(from)?,
        to_per_second: units::rate(to)?,
        lasts: units::duration(lasts)?,
    };
    if piece.lasts.is_zero() {
        return Err(Wrong::new(
            format!("`{text}` lasts no time"),
            "give it a duration, or leave it out",
        ));
    }
    Ok(piece)
}
