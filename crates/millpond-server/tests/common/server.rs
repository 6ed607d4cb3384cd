//! Runs the built `millpond serve` on a new or given directory.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use super::raw::{Raw, V3_0};

pub struct ServerProcess {
    pub child: Child,
    pub port: u16,
    pub data: PathBuf,
    pub sockets: PathBuf,
    _dir: Option<tempfile::TempDir>,
}

impl ServerProcess {
    /// Starts a server on a new directory.
    pub fn start() -> Self {
        Self::with(&[])
    }

    pub fn with(args: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("directory");
        let data = dir.path().join("data");
        let sockets = dir.path().to_owned();
        let mut server = Self::on(&data, &sockets, args);
        server._dir = Some(dir);
        server
    }

    /// Starts a server on a new directory. Its log goes to the file `log` next to that directory.
    pub fn logging(args: &[&str]) -> (Self, PathBuf) {
        let dir = tempfile::tempdir().expect("directory");
        let log = dir.path().join("log");
        let stderr = std::fs::File::create(&log).expect("log").into();
        let mut server = Self::spawn(command(), &dir.path().join("data"), dir.path(), args, stderr);
        server._dir = Some(dir);
        (server, log)
    }

    /// Starts a server on a given directory.
    pub fn on(data: &Path, sockets: &Path, args: &[&str]) -> Self {
        Self::spawn(command(), data, sockets, args, Stdio::inherit())
    }

    /// Starts a server on a given directory, under a umask.
    pub fn under_umask(umask: u32, data: &Path, sockets: &Path, args: &[&str]) -> Self {
        let mut shell = Command::new("sh");
        let script = format!("umask {umask:o}; exec \"$0\" \"$@\"");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_millpond")]);
        Self::spawn(shell, data, sockets, args, Stdio::inherit())
    }

    /// Starts a server without waiting until it is ready.
    pub fn begin(data: &Path, sockets: &Path, args: &[&str]) -> Child {
        let mut serve = serve(command(), data, sockets, args);
        serve.stdout(Stdio::null()).spawn().expect("millpond starts")
    }

    /// A new session over TCP.
    pub fn client(&self) -> Raw {
        Raw::tcp(self.port).startup(V3_0)
    }

    fn spawn(command: Command, data: &Path, sockets: &Path, args: &[&str], stderr: Stdio) -> Self {
        let mut child = serve(command, data, sockets, args)
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("millpond starts");
        let mut first = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("stdout"));
        out.read_line(&mut first).expect("first line");
        let port = first.trim().rsplit(':').next().and_then(|p| p.parse().ok());
        let port = port.unwrap_or_else(|| panic!("no port in {first:?}"));
        // Read the pipe until the server closes it, so that it never fills.
        std::thread::spawn(move || {
            let mut rest = String::new();
            let _ = out.read_to_string(&mut rest);
        });
        ServerProcess {
            child,
            port,
            data: data.to_owned(),
            sockets: sockets.to_owned(),
            _dir: None,
        }
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status().expect("kill");
        assert!(sent.success());
    }

    /// Sends SIGTERM and returns the exit status.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.child.wait().expect("exit status")
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(mut serve: Command, data: &Path, sockets: &Path, args: &[&str]) -> Command {
    serve.args(["serve", "--set", "shared_buffers=16MB", "--data"]).arg(data);
    serve.arg("--socket-dir").arg(sockets);
    if !args.contains(&"--listen") {
        serve.args(["--listen", "127.0.0.1:0"]);
    }
    serve.args(args);
    serve
}

pub fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_millpond"))
}

/// The path of a program if it is installed. If not, prints that the test is skipped.
pub fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    places.push("/usr/lib/postgresql/15/bin".into());
    let found = places.iter().map(|p| p.join(program)).find(|p| p.exists());
    if found.is_none() {
        println!("skipped: {program} is not installed");
    }
    found
}
