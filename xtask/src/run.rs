//! Runs commands, and shows the command line of one that fails.

use std::fmt;
use std::process::{Command, Stdio};

/// The error of a command that could not be run or that failed.
#[derive(Debug)]
pub struct Failed(pub String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A command under construction.
pub struct Cmd(Command);

/// A `cargo` command. It runs the `cargo` on the PATH, so that `+toolchain` works.
pub fn cargo(args: &[&str]) -> Cmd {
    command("cargo", args)
}

/// Any command.
pub fn command(program: &str, args: &[&str]) -> Cmd {
    let mut command = Command::new(program);
    command.args(args);
    // The `cargo run` that started the xtask sets these; they would override `+toolchain`.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    Cmd(command)
}

impl Cmd {
    /// Appends arguments.
    pub fn args(mut self, args: &[String]) -> Self {
        self.0.args(args);
        self
    }

    /// Sets an environment variable for the command.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.0.env(name, value);
        self
    }

    /// Runs the command with inherited output.
    pub fn run(mut self) -> Result<(), Failed> {
        match self.0.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Failed(format!("{:?} ended with {status}", self.0))),
            Err(error) => Err(Failed(format!("could not run {:?}: {error}", self.0))),
        }
    }

    /// Runs the command, and shows its output only if it fails.
    pub fn quiet(mut self) -> Result<(), Failed> {
        match self.0.output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(Failed(format!(
                "{:?} ended with {}\n{}{}",
                self.0,
                output.status,
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr),
            ))),
            Err(error) => Err(Failed(format!("could not run {:?}: {error}", self.0))),
        }
    }

    /// Runs the command, inheriting standard error, and returns its standard output. A command that
    /// fails is an error.
    pub fn output_of_success(mut self) -> Result<String, Failed> {
        match self.0.stderr(Stdio::inherit()).output() {
            Ok(output) if output.status.success() => {
                Ok(String::from_utf8_lossy(&output.stdout).into_owned())
            }
            Ok(output) => Err(Failed(format!("{:?} ended with {}", self.0, output.status))),
            Err(error) => Err(Failed(format!("could not run {:?}: {error}", self.0))),
        }
    }

    /// Runs the command and returns its standard output, even if it fails.
    pub fn output(mut self) -> Result<String, Failed> {
        let output = self
            .0
            .output()
            .map_err(|error| Failed(format!("could not run {:?}: {error}", self.0)))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
