//! What the subcommands do.

mod bench;
mod check;
mod replay;
mod serve;

pub use bench::bench;
pub use check::check;
pub use replay::replay;
pub use serve::serve;

use tracing_subscriber::EnvFilter;

/// Sends the log to stderr: as much of it as `MILLPOND_LOG` says, or else `otherwise`.
pub fn log_to_stderr(otherwise: &str) {
    let filter =
        EnvFilter::try_from_env("MILLPOND_LOG").unwrap_or_else(|_| EnvFilter::new(otherwise));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
