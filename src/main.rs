//! Arguments in, one call, exit code out.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(rushhour::cli::main())
}
