//! The command line.

use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Millpond: a transactional storage engine that speaks PostgreSQL.
#[derive(Debug, Parser)]
#[command(name = "millpond", version, about, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a database to PostgreSQL clients
    Serve(Serve),
    /// Check a database that is not being served: control file, log, pages, tables, indexes
    Check(Check),
    /// Replay page traces through replacement policies and compare their hits
    #[cfg(feature = "lab")]
    Replay(millpond_lab::cli::Replay),
    /// Count what statements write to shared memory, and predict how that scales
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Bench(millpond_lab::cli::Bench),
}

/// Serves a database until a signal stops it.
///
/// SIGTERM stops as the setting shutdown_mode says, by default fast. SIGINT (Ctrl-C) stops fast:
/// sessions are ended within shutdown_timeout. SIGQUIT exits at once, and the next start recovers.
/// SIGHUP reads the configuration again.
///
/// The first start creates the data directory, with user and database "postgres".
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  millpond serve
  millpond serve --data /var/lib/millpond --socket-dir /tmp --set shared_buffers=1GB
  psql -h 127.0.0.1 -p 5433 -U postgres postgres

Logging goes to stderr; MILLPOND_LOG=debug shows more of it.
Connections are not authenticated yet: only loopback addresses and Unix sockets are allowed.")]
pub struct Serve {
    /// Directory of the database; created if it is not there
    #[arg(long, value_name = "DIR", default_value = "millpond-data")]
    pub data: PathBuf,
    /// Address to listen on, loopback only; port 0 takes a free one [default: 127.0.0.1:5433]
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    pub listen: Option<SocketAddr>,
    /// Also listen on the Unix socket DIR/.s.PGSQL.PORT
    #[arg(long, value_name = "DIR")]
    pub socket_dir: Option<PathBuf>,
    /// File of settings, lines like shared_buffers = 1GB [default: millpond.conf in the data
    /// directory, if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Change a setting, like --set shared_buffers=1GB (overrides the files; may be repeated)
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
}

/// Checks the control file, the log, and every page, row and index entry of a database. Changes
/// nothing.
///
/// A database that was not shut down is recovered in memory. What does not fit there goes to a
/// temporary file in the directory that TMPDIR names.
///
/// Exit status: 0 if nothing is damaged; 1 if something is damaged; 2 if the check failed. A check
/// fails if the directory is not a database, a server uses it, a permission is missing, or
/// temporary files find no space.
#[derive(Debug, Args)]
pub struct Check {
    /// Directory of the database
    #[arg(long, value_name = "DIR", default_value = "millpond-data")]
    pub data: PathBuf,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let text = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    text.parse().map_err(|_| "expected ADDR:PORT, like 127.0.0.1:5433 or [::1]:5433".to_owned())
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| "expected NAME=VALUE, like shared_buffers=1GB".to_owned())?;
    if name.trim().is_empty() {
        return Err("the name before '=' is missing".to_owned());
    }
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn addresses_and_settings_are_parsed() {
        assert_eq!(address("localhost:0"), Ok("127.0.0.1:0".parse().expect("address")));
        assert!(address("5433").is_err());
        assert_eq!(assignment("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(assignment("=1").is_err());
        assert!(assignment("shared_buffers").is_err());
    }
}
