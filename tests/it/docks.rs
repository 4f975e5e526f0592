//! Docks: what they decide, whole runs with them, and the layers of retries behind them.

mod decisions;
mod layers;
mod runs;
