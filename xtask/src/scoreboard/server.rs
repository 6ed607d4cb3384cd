//! A Millpond server on a new directory, for one file of statements.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use millpond_oracle::{Answer, Client, Refusal, Transaction};

use crate::run::{Failed, command};

/// An answer that takes longer counts as none.
const PATIENCE: Duration = Duration::from_secs(20);

/// The server and a session on it.
pub struct Server {
    child: Child,
    client: Client,
    port: u16,
    directory: tempfile::TempDir,
}

impl Server {
    /// Starts one with these settings, on a copy of this data or on none.
    pub fn start(
        program: &Path,
        settings: &[(&str, &str)],
        data: Option<&Path>,
    ) -> Result<Self, Failed> {
        let failed = |error| Failed(format!("{}: {error}", program.display()));
        let directory = tempfile::tempdir().map_err(failed)?;
        if let Some(data) = data {
            command("cp", &["-r", &data.to_string_lossy()])
                .args(&[directory.path().join("data").to_string_lossy().into_owned()])
                .run()?;
        }
        let mut child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--set", "statement_timeout=10s"])
            .args(["--set", "shared_buffers=64MB", "--data"])
            .arg(directory.path().join("data"))
            .args(
                settings
                    .iter()
                    .flat_map(|(name, value)| ["--set".to_owned(), format!("{name}={value}")]),
            )
            .arg("--socket-dir")
            .arg(directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let port = child.stdout.take().and_then(announced_port);
        let Some(port) = port else {
            let _ = child.kill();
            return Err(Failed(format!("{} tells no port", program.display())));
        };
        let client = Client::tcp(port, "postgres", PATIENCE).map_err(failed)?;
        Ok(Server { child, client, port, directory })
    }

    /// Stops the server, and tells where its data is. The data goes with the second value.
    pub fn stop(mut self) -> Result<(PathBuf, tempfile::TempDir), Failed> {
        command("kill", &[&self.child.id().to_string()]).run()?;
        let _ = self.child.wait();
        let empty = tempfile::tempdir().map_err(|error| Failed(error.to_string()))?;
        let directory = std::mem::replace(&mut self.directory, empty);
        Ok((directory.path().join("data"), directory))
    }

    /// The state of the session's transaction.
    pub fn transaction(&self) -> Transaction {
        self.client.transaction()
    }

    /// Runs a statement. If the session ends or doesn't answer, that is an answer of the code
    /// XX000, and a new session follows. An error: the server is gone.
    pub fn run(&mut self, text: &str, data: &str) -> Result<Answer, Failed> {
        match self.client.run(text, data) {
            Ok(answer) => Ok(answer),
            Err(error) => {
                let message = format!("the session ended: {error}");
                self.client = Client::tcp(self.port, "postgres", PATIENCE)
                    .map_err(|_| Failed(format!("{message}; so did the server")))?;
                let sqlstate = "XX000".to_owned();
                Ok(Answer::Refused(Refusal { sqlstate, message, position: None }))
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The port that the first line of output ends with. The rest is read, so that the pipe never
/// fills.
fn announced_port(output: std::process::ChildStdout) -> Option<u16> {
    let mut output = BufReader::new(output);
    let mut first = String::new();
    output.read_line(&mut first).ok()?;
    std::thread::spawn(move || {
        let mut rest = String::new();
        let _ = output.read_to_string(&mut rest);
    });
    first.trim().rsplit(':').next()?.parse().ok()
}
