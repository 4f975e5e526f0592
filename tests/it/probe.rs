//! Reading a target: the scanner, the presets, what readings mean, and asking over real sockets.

mod lab;
pub mod metrics_server;
mod numbers;
mod origins;
mod pool;
mod presets;
mod rig;
mod running;
mod samples;
mod scanner;
mod scrape;
