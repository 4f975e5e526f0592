//! Arguments in, one call, exit code out.

fn main() -> std::process::ExitCode {
    // One provider of cryptography for all of the process, Goose's client included.
    rushhour::net::tls::install_provider();
    std::process::ExitCode::from(rushhour::cli::main())
}
