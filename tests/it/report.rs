//! Reports: the forms of one constructed report, the interval log read back, the live line.

mod forms;
mod hlog;
mod live;
mod scene;
mod together;
