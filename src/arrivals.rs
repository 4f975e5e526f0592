//! When the n-th arrival is due.
//!
//! Pure: the schedule is data, [`Schedule::due`] is a function of n alone, and n counts from 1. Worker k of m takes the n
//! with n % m == k.

use std::time::Duration;

/// How arrivals spread around the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// The n-th arrival is due when the integral of the rate reaches n.
    Even,
    /// An inhomogeneous Poisson process with the same rate, drawn from the seed.
    Poisson { seed: u64 },
}

/// A stretch of time in which the rate changes linearly from `from_per_second` to `to_per_second`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    pub from_per_second: f64,
    pub to_per_second: f64,
    pub lasts: Duration,
}

/// An open-loop schedule: pieces laid end to end from 0:00.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    pub spread: Spread,
    pub pieces: Vec<Piece>,
}
