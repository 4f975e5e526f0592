//! The fleet of hubs over real sockets.
