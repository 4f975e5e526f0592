//! Recovery analysis: curves with pinned answers, the traps that fooled other rules, properties, and noise.

mod curves;
mod noise;
mod properties;
mod scene;
mod traps;
