//! A private PostgreSQL in a temporary directory.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::client::Client;

/// The server's port: the name of its socket. It doesn't listen on TCP.
const PORT: u16 = 5432;

/// A running PostgreSQL 15. It stops, and its data goes, when this is dropped.
pub struct Postgres {
    programs: PathBuf,
    directory: tempfile::TempDir,
}

impl Postgres {
    /// Starts one, from the directory `PG15_BIN` or where Debian installs it. `None` if it isn't
    /// installed; then a line says that the test is skipped.
    pub fn start() -> io::Result<Option<Self>> {
        let programs = std::env::var_os("PG15_BIN")
            .map_or_else(|| PathBuf::from("/usr/lib/postgresql/15/bin"), PathBuf::from);
        if !programs.join("initdb").exists() {
            println!("skipped: PostgreSQL 15 is not installed");
            return Ok(None);
        }
        let directory = tempfile::Builder::new().prefix("millpond-oracle").tempdir()?;
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o777))?;
        let postgres = Postgres { programs, directory };
        let place = postgres.directory.path().display();
        postgres.program(&format!(
            "initdb -D {place}/data -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync"
        ))?;
        // As small and as quick as it gets: the data is not kept.
        let options = format!(
            "-c listen_addresses= -c unix_socket_directories={place} -c port={PORT} -c fsync=off \
             -c shared_buffers=16MB -c max_connections=20 -c autovacuum=off -c timezone=UTC \
             -c full_page_writes=off -c jit=off"
        );
        postgres.program(&format!(
            "pg_ctl -D {place}/data -l {place}/log -w -t 120 -o '{options}' start"
        ))?;
        Ok(Some(postgres))
    }

    /// A new session on a database.
    pub fn connect(&self, database: &str, patience: Duration) -> io::Result<Client> {
        Client::unix(self.socket_directory(), PORT, database, patience)
    }

    /// Where its socket is.
    pub fn socket_directory(&self) -> &Path {
        self.directory.path()
    }

    /// Runs one of PostgreSQL's programs. They refuse to run as root, so root becomes postgres.
    fn program(&self, arguments: &str) -> io::Result<()> {
        let line = format!("{}/{arguments}", self.programs.display());
        let mut command = if is_root()? {
            let mut command = Command::new("su");
            command.args(["postgres", "-s", "/bin/sh", "-c", &line]);
            command
        } else {
            let mut command = Command::new("sh");
            command.args(["-c", &line]);
            command
        };
        command.current_dir(self.directory.path());
        // A server that inherits a pipe keeps the reader of that pipe waiting.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match command.status()? {
            status if status.success() => Ok(()),
            status => Err(io::Error::other(format!("{line}: {status}"))),
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let data = self.directory.path().join("data");
        let _ = self.program(&format!("pg_ctl -D {} -m immediate -w stop", data.display()));
    }
}

fn is_root() -> io::Result<bool> {
    let output = Command::new("id").arg("-u").output()?;
    Ok(output.stdout.trim_ascii() == b"0")
}
