//! The one integration binary: a module per area.

mod agents;
mod arrivals;
mod chaos;
mod cli;
mod lab;
mod live_hubs;
mod live_users;
mod measure;
mod net;
mod probe;
mod recovery;
mod report;
mod run;
mod spec;
mod support;
mod tidy;
