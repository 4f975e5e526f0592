//! Reading a target: the scanner, the presets, what readings mean, and asking over real sockets.

mod lab;
mod metrics_server;
mod pool;
mod presets;
mod running;
mod scanner;
mod scrape;
