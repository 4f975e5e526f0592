//! The fault proxy: what it costs beside haproxy, and what it stands.
//!
//! `cargo bench --bench proxy -- MODE [NUMBER]`, each mode with the number of the goal if none is given:
//! - `passthrough [ROUNDS]` (8): round trips, single-stream throughput and memory of idle connections, beside haproxy in TCP mode.
//! - `stalled [CONNECTIONS]` (1000): every request of the API while nobody reads in either direction.
//! - `hash [MIB]` (1024): so much through 200 ms there and back while toxics come and go 200 times.
//! - `cut [CONNECTIONS]` (9000): RST to 30 % of so many idle connections within a second, twice under one seed.
//!
//! A goal that is missed ends it with an error.
#![expect(
    clippy::disallowed_methods,
    reason = "it starts proxies and servers, and measures by the clock"
)]

mod cut;
mod hash;
mod passthrough;
mod proxy;
mod stalled;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let number = |default: usize| {
        arguments
            .get(1)
            .map_or(default, |text| text.parse().expect("a number"))
    };
    match arguments.first().map(String::as_str) {
        Some("passthrough") => passthrough::run(number(8)),
        Some("stalled") => stalled::run(number(1_000)),
        Some("hash") => hash::run(number(1_024)),
        Some("cut") => cut::run(number(9_000)),
        Some("hold") => cut::hold(&arguments[1], arguments[2].parse().expect("a number")),
        _ => println!("cargo bench --bench proxy -- passthrough | stalled | hash | cut [NUMBER]"),
    }
}
