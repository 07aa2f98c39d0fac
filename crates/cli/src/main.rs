//! The `oblivio` command; see the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    oblivio_cli::main()
}
