//! What each recorded sample says: the numbers that a preset must find in it.

mod pools;

pub use pools::POOLS;
use rushhour::plan::signal::Signal;

/// One expected number; times in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Is {
    /// A gauge or the counter of a signal, summed over its series.
    Signal(Signal, f64),
    Waited(f64),
    /// Waits that ended.
    Waits(f64),
    Waiters(f64),
    /// The highest finite bucket.
    Top(f64),
    /// Not to be found in this sample.
    Not(Signal),
}

/// Sample, preset, `match`, numbers.
pub type Case = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static [Is],
);

use Is::{Not, Signal as Of, Waited, Waits};
use Signal::{
    Arrivals, Connections, Connects, Depth, Disconnects, Dropped, InUse, Max, Takeovers, Timeouts,
    Wait, WaitMax, Waiting,
};

pub const POOLERS: &[Case] = &[
    (
        "pgbouncer-1.18.table",
        "pgbouncer",
        &[],
        &[
            Waited(365_700_000.0),
            Of(Arrivals, 1000.0),
            Of(Waiting, 35.0),
            Of(InUse, 6.0),
            // Each user has a pool of the database's size.
            Of(Max, 10.0),
            // One of the two columns alone would say 1 s, or 313 ms.
            Of(WaitMax, 1_313_000.0),
            Not(Connects),
        ],
    ),
    (
        "pgbouncer-1.18.table",
        "pgbouncer",
        &[("database", "bench"), ("user", "app")],
        &[Of(Waiting, 35.0), Of(InUse, 5.0), Of(Max, 5.0)],
    ),
    (
        "pgbouncer-1.25.table",
        "pgbouncer",
        &[],
        &[
            Waited(360_000_000.0),
            Waits(1000.0),
            Of(Arrivals, 1040.0),
            Of(Waiting, 35.0),
            Of(InUse, 5.0),
            Of(Max, 5.0),
            Of(WaitMax, 417_000.0),
        ],
    ),
    (
        "pgbouncer-exporter.txt",
        "pgbouncer-exporter",
        &[],
        &[
            Waited(72_500_000.0),
            Waits(200.0),
            Of(Arrivals, 230.0),
            Of(Waiting, 35.0),
            Of(InUse, 5.0),
            // That of the console's own pool is not among them.
            Of(Max, 5.0),
            Not(WaitMax),
        ],
    ),
    (
        "pgbouncer-exporter-old.txt",
        "pgbouncer-exporter",
        &[],
        &[Waited(72_500_000.0), Of(Arrivals, 230.0), Of(Waiting, 35.0)],
    ),
    (
        "pgcat.txt",
        "pgcat",
        &[],
        &[
            Waited(4_500_000.0),
            Waits(90.0),
            Of(Waiting, 11.0),
            Of(InUse, 5.0),
            Of(Max, 5.0),
            Not(Timeouts),
        ],
    ),
    (
        "odyssey.txt",
        "odyssey",
        &[],
        &[
            Of(Waiting, 6.0),
            Of(InUse, 8.0),
            Of(Max, 10.0),
            Of(WaitMax, 750_000.0),
            Not(Wait),
        ],
    ),
    (
        "odyssey.table",
        "odyssey",
        &[],
        &[
            Waited(80_000_000.0),
            Waits(400.0),
            Of(Waiting, 6.0),
            Of(InUse, 8.0),
            Of(Max, 10.0),
            // The console always writes 0.
            Not(WaitMax),
        ],
    ),
    (
        "postgres.table",
        "postgres",
        &[],
        &[Of(InUse, 51.0), Of(Max, 97.0), Of(Connects, 4013.0)],
    ),
];

pub const BROKERS: &[Case] = &[
    (
        "emqx.txt",
        "emqx",
        &[],
        &[
            Of(Connections, 1150.0),
            Of(Connects, 5100.0),
            Of(Disconnects, 3950.0),
            Of(Takeovers, 40.0),
            Of(Dropped, 17.0),
        ],
    ),
    (
        "emqx-nodes.txt",
        "emqx",
        &[("node", "emqx@10.40.0.32")],
        &[Of(Connections, 550.0), Of(Connects, 2500.0)],
    ),
    (
        "vernemq.txt",
        "vernemq",
        &[],
        &[
            Of(Connections, 600.0),
            Of(Connects, 1000.0),
            Of(Disconnects, 410.0),
            Of(Dropped, 8.0),
            Not(Takeovers),
        ],
    ),
    (
        "hivemq.txt",
        "hivemq",
        &[],
        &[
            Of(Connections, 420.0),
            Of(Connects, 2600.0),
            Of(Disconnects, 2180.0),
            Of(Dropped, 3.0),
        ],
    ),
    (
        "rabbitmq.txt",
        "rabbitmq",
        &[],
        &[
            Of(Connections, 210.0),
            Of(Connects, 950.0),
            Of(Disconnects, 740.0),
            Of(Depth, 55.0),
        ],
    ),
    (
        "nats.json",
        "nats",
        &[],
        &[
            Of(Connections, 321.0),
            Of(Max, 65536.0),
            Of(Connects, 9876.0),
        ],
    ),
    (
        "mosquitto.sys",
        "mosquitto",
        &[],
        // 300 connects, then 120 takeovers that leave the number of connected clients as it was.
        &[
            Of(Connections, 301.0),
            Of(Connects, 420.0),
            Of(Disconnects, 120.0),
            Of(Depth, 44.0),
            Of(Dropped, 9.0),
        ],
    ),
];
