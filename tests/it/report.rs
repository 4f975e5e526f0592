//! Reports: the forms of one constructed report, the interval log read back, the live line.

mod forms;
mod hlog;
mod live;
pub mod scene;
mod together;
