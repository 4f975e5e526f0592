//! Faults done and undone: the proxy as a process, the journal, kills, healing after a death.

mod clis;
mod components;
mod cuts;
mod death;
mod effects;
mod healing;
mod holding;
mod journal;
mod lab;
mod life;
mod operations;
mod pipeline;
mod protocols;
mod proxy;
mod stage;
mod toxiproxy;
mod waiting;
