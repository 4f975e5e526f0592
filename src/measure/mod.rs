//! What the run measured, and what it means.
//!
//! Pure: everything here is told offsets and events and asks no clock. Workers tell events to their [`Shard`]; the [`Collector`] closes
//! seconds, keeps the account of the commands, and judges. Nothing here knows how events come about or how a report looks.

mod affected;
pub mod certificates;
pub mod collector;
pub mod critical;
pub mod explained;
pub mod figures;
pub mod histogram;
pub mod inferred;
pub mod interference;
pub mod interval;
pub mod judge;
pub mod ledger;
mod ledger_entry;
pub mod live;
pub mod marks;
mod observation;
pub mod phases;
pub mod places;
pub mod pool;
mod publishers;
pub mod recovery;
pub mod remembered;
mod retries;
pub mod returns;
pub mod second;
pub mod series;
pub mod shard;
pub mod statistics;
pub mod totals;
pub mod transition;
pub mod verdict;

pub use collector::Collector;
pub use histogram::Histogram;
pub use interval::Interval;
pub use judge::{Judge, Rehearsal};
pub use ledger::{Account, Ledger, State};
pub use live::Live;
pub use marks::{MarkState, Marks};
pub use publishers::PublisherTotal;
pub use retries::RetryTotal;
pub use second::Second;
pub use series::Series;
pub use shard::Shard;
pub use totals::Totals;
pub use transition::Transition;
pub use verdict::{Judged, Judgement, Verdict};
