//! A running test, seen live: the line on the terminal, and the page that Prometheus reads. What is shown comes from `measure`;
//! nothing here decides anything.

pub mod exporter;
pub mod exposition;
pub mod terminal;
