//! TLS against servers of the test: what each side counts and says of the other.

mod classes;
mod https;
mod identities;
mod server;
mod sessions;
mod stage;
mod websocket;
