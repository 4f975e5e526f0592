//! A running test seen by others: the exported page, the dashboards and alerts made for it.

mod dashboards;
mod exposition;
mod promtool;
