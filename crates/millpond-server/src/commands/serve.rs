//! `millpond serve`: from the command line to a clean shutdown.

use crate::cli::Serve;
use crate::net::{ListenError, Listener};
use crate::run::{Server, ServerConfig};
use millpond::{Database, Settings, SqlError};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use thiserror::Error;

/// Why the server did not start, or did not stop cleanly.
#[derive(Debug, Error)]
enum ServeError {
    #[error("could not read configuration file {}: {source}", path.display())]
    Config { path: PathBuf, source: io::Error },
    #[error("{}: {}", path.display(), spoken(error))]
    Setting { path: PathBuf, error: SqlError },
    #[error("--set {name}={value}: {}", spoken(error))]
    Set { name: String, value: String, error: SqlError },
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("could not open the database in {}: {}", path.display(), spoken(error))]
    Open { path: PathBuf, error: SqlError },
    #[error("could not start: {0}")]
    Start(#[from] io::Error),
    #[error("could not shut down cleanly: {}", spoken(.0))]
    Shutdown(SqlError),
}

/// An SQL error as a line for people.
fn spoken(error: &SqlError) -> String {
    let mut text = error.message.clone();
    for more in [&error.context, &error.detail, &error.hint].into_iter().flatten() {
        text.push_str("\n  ");
        text.push_str(more);
    }
    text
}

/// Serves until a signal says stop.
pub fn serve(options: &Serve) -> ExitCode {
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("millpond: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Serve) -> Result<(), ServeError> {
    let settings = settings(options)?;
    let address = options.listen.unwrap_or_else(|| default_address(&settings));
    // From here on a signal ends the server in order, also while the database is being recovered.
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let tcp = Listener::tcp(address)?;
    let Listener::Tcp(_, bound) = &tcp else { return Ok(()) };
    let bound = *bound;
    let mut listeners = vec![tcp];
    let mut socket = None;
    if let Some(dir) = &options.socket_dir {
        let listener = Listener::unix(dir, bound.port())?;
        if let Listener::Unix(_, path) = &listener {
            socket = Some(path.path().to_owned());
        }
        listeners.push(listener);
    }
    let max_connections = usize::try_from(settings.int("max_connections")).unwrap_or(1).max(1);
    let failed = |error| ServeError::Open { path: options.data.clone(), error };
    let database = Database::open(&options.data, settings).map_err(failed)?;
    let config = ServerConfig {
        loops: thread::available_parallelism().map_or(1, usize::from),
        max_connections,
    };
    let server = Server::start(Arc::clone(&database), listeners, config)?;
    announce(&options.data, bound, socket.as_deref());
    if let Some(signal) = signals.forever().next() {
        tracing::info!(signal, "shutting down");
    }
    leave_at_once_on(signals);
    server.stop();
    database.shutdown().map_err(ServeError::Shutdown)?;
    tracing::info!("shut down");
    Ok(())
}

/// From now on a second signal ends the process where it stands; the next start recovers from the log.
fn leave_at_once_on(mut signals: Signals) {
    let wait = move || {
        if signals.forever().next().is_some() {
            tracing::warn!("a second signal: leaving without a checkpoint");
            std::process::exit(1);
        }
    };
    if let Err(error) = thread::Builder::new().name("signals".to_owned()).spawn(wait) {
        tracing::debug!(%error, "a second signal will not be heard");
    }
}

fn settings(options: &Serve) -> Result<Settings, ServeError> {
    let mut settings = Settings::default();
    if let Some(path) = &options.config {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ServeError::Config { path: path.clone(), source })?;
        settings
            .set_from_file(&text)
            .map_err(|error| ServeError::Setting { path: path.clone(), error })?;
    }
    for (name, value) in &options.set {
        settings.set(name, value).map_err(|error| ServeError::Set {
            name: name.clone(),
            value: value.clone(),
            error,
        })?;
    }
    if let Some(listen) = options.listen {
        // So that SHOW port tells the truth.
        let port = listen.port();
        if port != 0 {
            let _ = settings.set("port", &port.to_string());
        }
    }
    Ok(settings)
}

fn default_address(settings: &Settings) -> SocketAddr {
    let port = u16::try_from(settings.int("port")).unwrap_or(5433);
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Says where and how to connect, on stdout; tests read the first line.
fn announce(data: &Path, bound: SocketAddr, socket: Option<&Path>) {
    let mut out = io::stdout().lock();
    let mut text = format!("millpond: serving {} on {bound}\n", data.display());
    if let Some(socket) = socket {
        text.push_str(&format!("millpond: and on Unix socket {}\n", socket.display()));
    }
    text.push_str(&format!(
        "millpond: connect with: psql -h {} -p {} -U postgres postgres\n",
        bound.ip(),
        bound.port()
    ));
    if let Some(dir) = socket.and_then(Path::parent) {
        text.push_str(&format!(
            "millpond:           or: psql -h {} -p {} -U postgres postgres\n",
            dir.display(),
            bound.port()
        ));
    }
    text.push_str("millpond: stop with Ctrl-C\n");
    // Nobody may be reading.
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}
