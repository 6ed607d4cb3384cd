//! `millpond serve`: from the command line to a clean shutdown.

mod signals;
mod stopping;

use crate::cli::Serve;
use crate::net::{ListenError, Listener};
use crate::run::{Server, ServerConfig};
use millpond::settings::ConfigurationFiles;
use millpond::{Database, Settings, SqlError};
use millpond_sync::heap;
use signals::{Request, Signals};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use thiserror::Error;

/// Why the server did not start, or did not stop cleanly.
#[derive(Debug, Error)]
enum ServeError {
    #[error("{}", spoken(.0))]
    Configuration(SqlError),
    #[error("--set {name}={value}: {}", spoken(error))]
    Set { name: String, value: String, error: SqlError },
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("could not open the database in {}: {}", path.display(), spoken(error))]
    Open { path: PathBuf, error: SqlError },
    #[error("could not start the server: {0}")]
    Start(#[from] io::Error),
    #[error("could not shut down cleanly: {}", spoken(.0))]
    Shutdown(SqlError),
}

/// An SQL error as text for a terminal.
fn spoken(error: &SqlError) -> String {
    let mut text = error.message.clone();
    for more in [&error.context, &error.detail, &error.hint].into_iter().flatten() {
        text.push_str("\n  ");
        text.push_str(more);
    }
    text
}

/// Serves until a signal stops the server.
pub fn serve(options: &Serve) -> ExitCode {
    if !heap::bound_what_is_kept() {
        tracing::debug!("the allocator decides how much freed memory it keeps");
    }
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
    warn_of_root();
    // From here on the server handles signals, also during recovery.
    let signals = Signals::take()?;
    let tcp = Listener::tcp(address)?;
    let Listener::Tcp(_, bound) = &tcp else { return Ok(()) };
    let bound = *bound;
    let mut listeners = vec![tcp];
    let mut socket = None;
    if let Some(dir) = &options.socket_dir {
        let permissions = u32::try_from(settings.int("unix_socket_permissions")).unwrap_or(0o777);
        let listener = Listener::unix_with(dir, bound.port(), permissions)?;
        if let Listener::Unix(_, path) = &listener {
            signals.remove_at_leave(path);
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
    // Before the first session: a signal by a client must stop the server in order.
    signals.serving();
    let server = Server::start(Arc::clone(&database), listeners, config)?;
    announce(&options.data, bound, socket.as_deref());
    let limit = serve_until_stopped(&server, &database, &signals);
    let stopped = stopping::stop_fast(server, database, &signals, limit);
    let status = match stopped {
        Ok(()) => {
            tracing::info!("database system is shut down");
            0
        }
        Err(error) => {
            eprintln!("millpond: {}", ServeError::Shutdown(error));
            1
        }
    };
    // A query operator that is still computing must not delay the exit.
    signals.leave(status)
}

/// How often a server that waits for its last session checks whether that session has ended.
const LOOK: Duration = Duration::from_millis(50);
/// How often freed memory is given back to the system. It takes milliseconds.
const GIVE_BACK: Duration = Duration::from_secs(60);

/// Returns when the sessions must end, with the time limit for that.
fn serve_until_stopped(
    server: &Server<Arc<Database>>,
    database: &Database,
    signals: &Signals,
) -> Option<Duration> {
    let mut smart = false;
    loop {
        match signals.wait(Some(if smart { LOOK } else { GIVE_BACK })) {
            Some(Request::Reload) => {
                tracing::info!("received SIGHUP, reloading configuration files");
                database.reload_configuration();
            }
            Some(Request::Stop) if database.settings().text("shutdown_mode") == "smart" => {
                if !smart {
                    tracing::info!("received smart shutdown request");
                }
                smart = true;
                server.refuse_sessions();
            }
            Some(Request::Stop | Request::StopFast) => {
                tracing::info!("received fast shutdown request");
                break;
            }
            None if smart => {}
            None => heap::give_back_free(),
        }
        if smart && server.sessions() == 0 {
            break;
        }
    }
    let limit = database.settings().duration("shutdown_timeout");
    (!limit.is_zero()).then_some(limit)
}

/// PostgreSQL refuses to run as root. This server, on loopback addresses only, just warns.
fn warn_of_root() {
    if rustix::process::geteuid().is_root() {
        tracing::warn!(
            "the server runs as root, so an attacker who enters it owns the machine; start it as another user"
        );
    }
}

fn settings(options: &Serve) -> Result<Settings, ServeError> {
    let mut scratch = Settings::default();
    for (name, value) in &options.set {
        scratch.set(name, value).map_err(|error| ServeError::Set {
            name: name.clone(),
            value: value.clone(),
            error,
        })?;
    }
    let mut command_line = options.set.clone();
    if let Some(listen) = options.listen.filter(|listen| listen.port() != 0) {
        // `SHOW port` must return the real port.
        command_line.push(("port".to_owned(), listen.port().to_string()));
    }
    ConfigurationFiles::new(&options.data, options.config.clone(), command_line)
        .read()
        .map_err(ServeError::Configuration)
}

fn default_address(settings: &Settings) -> SocketAddr {
    let port = u16::try_from(settings.int("port")).unwrap_or(5433);
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Prints on stdout where and how to connect. Tests read the first line.
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
    // stdout may be closed.
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}
