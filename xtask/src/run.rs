//! Running a command, with its words shown when it fails.

use std::fmt;
use std::process::{Command, Stdio};

/// A command that could not be run or that ended badly.
#[derive(Debug)]
pub struct Failed(pub String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A command being put together.
pub struct Cmd(Command);

/// A `cargo` command. It goes through `cargo` on the PATH, not through the one that runs the xtask,
/// so that `+toolchain` works.
pub fn cargo(args: &[&str]) -> Cmd {
    command("cargo", args)
}

/// Any command.
pub fn command(program: &str, args: &[&str]) -> Cmd {
    let mut command = Command::new(program);
    command.args(args);
    // Set by the `cargo run` that started the xtask; they would override `+toolchain`.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    Cmd(command)
}

impl Cmd {
    /// Appends arguments.
    pub fn args(mut self, args: &[String]) -> Self {
        self.0.args(args);
        self
    }

    /// Sets a variable for the command.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.0.env(name, value);
        self
    }

    /// Runs it, output going where ours goes.
    pub fn run(mut self) -> Result<(), Failed> {
        match self.0.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Failed(format!("{:?} ended with {status}", self.0))),
            Err(error) => Err(Failed(format!("could not run {:?}: {error}", self.0))),
        }
    }

    /// Runs it, and shows what it printed if it fails.
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

    /// Runs it and returns its standard output. Its standard error goes where ours goes. A
    /// command that fails is an error.
    pub fn output_of_success(mut self) -> Result<String, Failed> {
        match self.0.stderr(Stdio::inherit()).output() {
            Ok(output) if output.status.success() => {
                Ok(String::from_utf8_lossy(&output.stdout).into_owned())
            }
            Ok(output) => Err(Failed(format!("{:?} ended with {}", self.0, output.status))),
            Err(error) => Err(Failed(format!("could not run {:?}: {error}", self.0))),
        }
    }

    /// Runs it and returns what it printed, whether it succeeded or not.
    pub fn output(mut self) -> Result<String, Failed> {
        let output = self
            .0
            .output()
            .map_err(|error| Failed(format!("could not run {:?}: {error}", self.0)))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
