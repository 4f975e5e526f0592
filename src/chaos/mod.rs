//! Faults done and undone.
//!
//! Decides when a fault of the plan is injected, whether its effect was seen, and how it is undone, whatever happens to the run.
//! It knows nothing of load, measuring or reports: it tells `Event::Mark` and nothing else.
//!
//! The promises, in the order in which they protect the target:
//! 1. The undo is data in the journal, fsynced, before the fault is injected ([`journal`]).
//! 2. [`faults`] undoes on every way out of a run; what it could not undo it names.
//! 3. Against `kill -9`: a latency carries its own deadline inside the proxy, and a [`watchdog`] heals the rest.
//! 4. [`heal`] undoes anything from the journal alone, twice without harm.

pub mod bulletin;
pub mod claims;
pub mod cluster;
pub mod command;
mod component_fault;
pub mod container;
pub mod cut;
pub mod dry_run;
mod due;
pub mod faults;
pub mod heal;
pub mod hold;
pub mod journal;
pub mod kill;
pub mod kubectl;
mod life;
pub mod link_fault;
pub mod links;
pub mod operate;
pub mod packets;
pub mod pause;
pub mod process;
pub mod programs;
pub mod proxy;
pub mod request;
pub mod undo;
pub mod unit;
pub mod watchdog;
