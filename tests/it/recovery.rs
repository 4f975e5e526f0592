//! Recovery analysis: curves with pinned answers, the traps that fooled other rules, properties, and noise.

mod curves;
mod fate;
mod noise;
mod properties;
mod scene;
mod step;
mod suite;
mod traps;
