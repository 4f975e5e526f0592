//! Arrivals as files write them: `20/s for 2m`, `20/s to 240/s over 1m`.

use super::fleet::Around;
use super::reader::At;
use super::recorded;
use super::units::{self, Wrong};
use crate::arrivals::{Piece, Schedule, Spread};
use crate::dice::Dice;
use crate::plan::quantity;
use std::time::Duration;

/// Keeps the streams of schedules apart from every other use of the seed.
const PURPOSE: u64 = 0x5c4e_d01e;

/// `arrivals:` of one group; `stream` names it, so that no two groups arrive alike.
pub(super) fn arrivals(at: &At<'_>, around: &Around<'_>, stream: &str) -> Option<Schedule> {
    let mut fields = at.fields()?;
    let form = fields.one_of(&["even", "poisson", "recorded"]);
    fields.finish(&[]);
    let (form, at) = form?;
    let index = stream.bytes().fold(0u64, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    let seed = Dice::named(around.seed, PURPOSE, index).bits();
    let schedule = match form {
        "recorded" => recorded::recorded(&at, around.file, seed)?,
        "even" => Schedule::new(Spread::Even, pieces(&at)?),
        _ => Schedule::new(Spread::Poisson { seed }, pieces(&at)?),
    };
    let is_recorded = form == "recorded";
    check_length(&at, schedule.lasts(), around.duration, is_recorded)?;
    if schedule.peak_per_second() == 0.0 {
        at.wrong(
            "nobody arrives",
            "give at least one piece a rate above zero, or leave the group out",
        );
        return None;
    }
    Some(schedule)
}

fn pieces(at: &At<'_>) -> Option<Vec<Piece>> {
    let items = at.items()?;
    let pieces: Vec<Option<Piece>> = items.iter().map(read_piece).collect();
    pieces.into_iter().collect()
}

/// Arrivals must last as long as the load.
fn check_length(at: &At<'_>, total: Duration, duration: Duration, is_recorded: bool) -> Option<()> {
    // A duration that could not be read is zero, and has been reported.
    if total == duration || duration.is_zero() {
        return Some(());
    }
    let difference = quantity::duration(total.abs_diff(duration));
    let help = if is_recorded {
        format!(
            "write `duration: {}`, or choose another `from`, `to` or `speed`",
            quantity::duration(total)
        )
    } else if total > duration {
        format!("shorten it by {difference}, or make `duration` longer")
    } else {
        format!("add a piece of {difference}, such as `0/s for {difference}`")
    };
    let what = if is_recorded {
        "what is played lasts"
    } else {
        "the pieces last"
    };
    at.wrong(
        format!(
            "{what} {}, and `duration` is {}",
            quantity::duration(total),
            quantity::duration(duration)
        ),
        help,
    );
    None
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
