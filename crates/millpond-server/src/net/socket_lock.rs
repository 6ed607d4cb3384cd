//! The lock file of a Unix socket: `.s.PGSQL.PORT.lock` beside it holds the server's process id, as
//! PostgreSQL's does.
//!
//! The directory may be one where anybody can make files, such as `/tmp`. So the file comes into
//! being whole, under a name that nothing has yet; what is there already is opened for reading
//! only, and a symbolic link is not followed. Whether a server holds the lock is told by the
//! process id alone: a file that a dead server has left is replaced.

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, getppid, test_kill_process};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// How often a start tries anew, because the file came or went in between.
const TRIES: usize = 100;
/// More of a file than a lock file has.
const MOST_BYTES: u64 = 4096;

/// Why the lock can't be had.
#[derive(Debug, Error)]
pub enum SocketLockError {
    /// A process holds it.
    #[error(
        "lock file \"{}\" already exists\n  Is another server (PID {pid}) using socket file \"{}\"?",
        lock.display(), socket.display()
    )]
    Held {
        /// The lock's file.
        lock: PathBuf,
        /// The socket's.
        socket: PathBuf,
        /// The process.
        pid: i32,
    },
    /// There is nothing in it.
    #[error(
        "lock file \"{}\" is empty\n  Either another server is starting, or the lock file is the remnant \
         of a previous server startup crash.", .0.display()
    )]
    Empty(PathBuf),
    /// It is something else.
    #[error("bogus data in lock file \"{}\": {what}", path.display())]
    Bogus {
        /// The file.
        path: PathBuf,
        /// What it is or has.
        what: String,
    },
    /// The system says no.
    #[error("could not {what} lock file \"{}\": {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// A lock that this process holds. Its file goes when it is dropped.
#[derive(Debug)]
pub struct SocketLock {
    path: PathBuf,
}

impl Drop for SocketLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl SocketLock {
    /// Takes the lock of a socket.
    pub fn take(socket: &Path) -> Result<Self, SocketLockError> {
        let mut name = socket.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        let failed = |what: &'static str| {
            let path = path.clone();
            move |source| SocketLockError::Io { what, path, source }
        };
        for _ in 0..TRIES {
            if create(&path).map_err(failed("create"))? {
                return Ok(Self { path });
            }
            let Some(found) = open(&path)? else { continue };
            let pid = read_pid(found, &path)?;
            if is_other_process(pid) {
                return Err(SocketLockError::Held { lock: path, socket: socket.to_owned(), pid });
            }
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed("remove old")(error));
                }
                _ => {}
            }
        }
        Err(failed("create")(io::ErrorKind::AlreadyExists.into()))
    }
}

/// Makes the file with this process's id in it, for the owner alone. `false`: there is something of
/// that name.
fn create(path: &Path) -> io::Result<bool> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    let mut file = tempfile::Builder::new()
        .prefix(".s.PGSQL.")
        .tempfile_in(directory.unwrap_or(Path::new(".")))?;
    writeln!(file, "{}", std::process::id())?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(true),
        Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(failed) => Err(failed.error),
    }
}

/// Opens what is there, to read. `None`: it has just gone.
fn open(path: &Path) -> Result<Option<File>, SocketLockError> {
    let bogus =
        |what: &str| SocketLockError::Bogus { path: path.to_owned(), what: what.to_owned() };
    let failed = |source| SocketLockError::Io { what: "open", path: path.to_owned(), source };
    // A named pipe must not hold the start up.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(rustix::io::Errno::LOOP) => return Err(bogus("it is a symbolic link")),
        Err(error) => return Err(failed(error.into())),
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(bogus("it is not a regular file"));
    }
    Ok(Some(file))
}

fn read_pid(file: File, path: &Path) -> Result<i32, SocketLockError> {
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(|source| SocketLockError::Io {
        what: "read",
        path: path.to_owned(),
        source,
    })?;
    if bytes.is_empty() {
        return Err(SocketLockError::Empty(path.to_owned()));
    }
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().next().unwrap_or("").trim();
    match line.parse::<i32>() {
        // PostgreSQL's standalone backends write theirs negative.
        Ok(pid) if pid != 0 => Ok(pid.saturating_abs()),
        _ => {
            let line: String = line.chars().take(40).collect();
            Err(SocketLockError::Bogus { path: path.to_owned(), what: format!("\"{line}\"") })
        }
    }
}

/// Whether a process of that id runs that may be a server of the same user. This process and its
/// parent are none: after the restart of a machine or a container they may have the id that the
/// dead server had.
fn is_other_process(pid: i32) -> bool {
    let Some(pid) = Pid::from_raw(pid) else { return false };
    if Some(pid) == Pid::from_raw(std::process::id().cast_signed()) || Some(pid) == getppid() {
        return false;
    }
    test_kill_process(pid).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    /// A directory, and the paths of a socket and its lock there.
    fn place() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let directory = tempfile::tempdir().expect("directory");
        let socket = directory.path().join(".s.PGSQL.5433");
        let lock = directory.path().join(".s.PGSQL.5433.lock");
        (directory, socket, lock)
    }

    #[test]
    fn the_lock_names_its_process_and_is_its_owners_alone() {
        let (directory, socket, path) = place();
        let lock = SocketLock::take(&socket).expect("free");
        let text = fs::read_to_string(&path).expect("written");
        assert_eq!(text, format!("{}\n", std::process::id()));
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        drop(lock);
        assert_eq!(fs::read_dir(directory.path()).expect("listed").count(), 0);
    }

    #[test]
    fn a_link_to_another_file_is_refused_and_the_file_untouched() {
        let (directory, socket, lock) = place();
        let victim = directory.path().join("victim");
        fs::write(&victim, "precious").expect("written");
        std::os::unix::fs::symlink(&victim, &lock).expect("linked");
        let error = SocketLock::take(&socket).expect_err("refused").to_string();
        assert!(error.contains("symbolic link"), "{error}");
        assert_eq!(fs::read(&victim).expect("kept"), b"precious");
        // One that leads nowhere makes no file there either.
        fs::remove_file(&victim).expect("removed");
        SocketLock::take(&socket).expect_err("refused");
        assert!(!victim.exists());
    }

    #[test]
    fn a_living_process_holds_the_lock_and_a_dead_one_does_not() {
        let (_directory, socket, lock) = place();
        let mut other =
            Command::new("cat").stdin(std::process::Stdio::piped()).spawn().expect("cat");
        fs::write(&lock, format!("{}\n", other.id())).expect("written");
        let error = SocketLock::take(&socket).expect_err("held");
        assert!(matches!(error, SocketLockError::Held { .. }), "{error}");
        assert!(error.to_string().contains("already exists"), "{error}");
        drop(other.stdin.take());
        other.wait().expect("ended");
        SocketLock::take(&socket).expect("replaced");
    }

    #[test]
    fn anothers_flock_says_nothing() {
        let (_directory, socket, lock) = place();
        fs::write(&lock, "999999999\n").expect("written");
        let file = File::open(&lock).expect("opened");
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).expect("locked");
        SocketLock::take(&socket).expect("replaced");
    }

    #[test]
    fn what_is_no_lock_file_is_left_alone() {
        let (_directory, socket, lock) = place();
        fs::write(&lock, "").expect("written");
        assert!(matches!(SocketLock::take(&socket), Err(SocketLockError::Empty(_))));
        fs::write(&lock, "dear reader").expect("written");
        let error = SocketLock::take(&socket).expect_err("refused").to_string();
        assert!(error.contains("bogus data") && error.contains("dear"), "{error}");
        assert_eq!(fs::read(&lock).expect("kept"), b"dear reader");
        fs::remove_file(&lock).expect("removed");
        fs::create_dir(&lock).expect("made");
        assert!(matches!(SocketLock::take(&socket), Err(SocketLockError::Bogus { .. })));
    }
}
