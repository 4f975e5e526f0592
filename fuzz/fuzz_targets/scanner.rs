//! The scanner of Prometheus' text format against bytes that nobody wrote.
//!
//! `cargo fuzz run scanner` with cargo-fuzz and a nightly compiler; on stable, `cargo run --release --manifest-path fuzz/Cargo.toml -- 60`
//! changes the recorded samples at random for so many seconds, the same way for the same seed (second argument).
#![cfg_attr(fuzzing, no_main)]

// The file alone, so that a change of the scanner is tried in a second.
#[path = "../../src/probe/prometheus.rs"]
mod prometheus;

use prometheus::scan;

/// What must hold whatever comes: nothing panics, no line counts twice, and good lines around it are read.
fn check(bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n').count() as u64;
    let scanned = scan(bytes, |_| true);
    let told = scanned.series.len() as u64 + scanned.bad_lines + scanned.duplicate_lines;
    assert!(told <= lines, "{told} of {lines} lines");
    for series in &scanned.series {
        assert!(series.labels.is_sorted(), "{series:?}");
        assert_eq!(series.label("no such label\u{0}"), None);
    }
    let framed = [b"first_line 1\n".as_slice(), bytes, b"\nlast_line 2\n"].concat();
    let scanned = scan(&framed, |name| name.ends_with("_line"));
    for wanted in ["first_line", "last_line"] {
        assert!(scanned.series.iter().any(|series| series.name == wanted), "{wanted}");
    }
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check(bytes));

#[cfg(not(fuzzing))]
fn main() {
    harness::main();
}

#[cfg(not(fuzzing))]
mod harness {
    use std::path::Path;
    use std::time::{Duration, Instant};

    /// Pieces that the format gives a meaning.
    const PIECES: [&str; 18] = [
        "{", "}", "\"", "=", ",", "\\", " ", "\n", "#", "\r", "\t", "NaN", "+Inf", "1e308", "le=\"", " # {", "\u{feff}", "é",
    ];

    /// xorshift64*: enough to change bytes, and the same for the same seed.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, limit: usize) -> usize {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            let drawn = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
            (drawn as usize) % limit.max(1)
        }
    }

    pub fn main() {
        let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u64>());
        let seconds = arguments.next().map_or(60, |word| word.expect("seconds"));
        let seed = arguments.next().map_or(1, |word| word.expect("a seed"));
        let samples = samples();
        assert!(!samples.is_empty(), "there are no samples to begin with");
        let mut dice = Dice(seed | 1);
        let end = Instant::now() + Duration::from_secs(seconds);
        let mut tried = 0_u64;
        while Instant::now() < end {
            for _ in 0..1000 {
                let bytes = changed(&samples, &mut dice);
                // What broke it is told by the panic's own output and can be had again by the seed.
                let kept = bytes.clone();
                if std::panic::catch_unwind(|| super::check(&bytes)).is_err() {
                    eprintln!("input {tried} of seed {seed}: {:?}", String::from_utf8_lossy(&kept));
                    std::process::exit(1);
                }
                tried += 1;
            }
        }
        println!("{tried} inputs in {seconds} s, seed {seed}: nothing broke");
    }

    fn samples() -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/it/probe/samples");
        let entries = std::fs::read_dir(folder).expect("the samples can be listed");
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths.iter().map(|path| std::fs::read(path).expect("a sample can be read")).collect()
    }

    /// A part of a sample with a few bytes changed, cut, doubled or replaced by what the format gives a meaning.
    fn changed(samples: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
        let sample = &samples[dice.below(samples.len())];
        let begin = dice.below(sample.len());
        let length = 1 + dice.below(400);
        let mut bytes: Vec<u8> = sample[begin..].iter().copied().take(length).collect();
        for _ in 0..=dice.below(8) {
            let at = dice.below(bytes.len());
            match dice.below(5) {
                0 if !bytes.is_empty() => bytes[at] = dice.below(256) as u8,
                1 if !bytes.is_empty() => drop(bytes.remove(at)),
                2 => {
                    let piece = PIECES[dice.below(PIECES.len())].as_bytes();
                    bytes.splice(at..at, piece.iter().copied());
                }
                3 => bytes.truncate(at),
                _ => {
                    let part: Vec<u8> = bytes[at..].iter().copied().take(40).collect();
                    bytes.extend(part);
                }
            }
        }
        bytes
    }
}
