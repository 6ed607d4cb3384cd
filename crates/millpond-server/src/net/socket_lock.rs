//! The lock file of a Unix socket. Like PostgreSQL, the server writes its process id to
//! `.s.PGSQL.PORT.lock` next to the socket.
//!
//! Every user may be able to create files in the directory, for example in `/tmp`. The server
//! therefore writes the file under a temporary name, and links it to a name that does not exist
//! yet. It opens an existing file for reading only and does not follow a symbolic link. Only the
//! process id decides whether a server holds the lock: the file of a dead server is replaced.

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, getppid, test_kill_process};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// How often a start tries again after another process created or removed the file.
const TRIES: usize = 100;
/// A limit above the size of any lock file.
const MOST_BYTES: u64 = 4096;

/// Why the lock can't be taken.
#[derive(Debug, Error)]
pub enum SocketLockError {
    /// Another process holds it.
    #[error(
        "lock file \"{}\" already exists\n  Is another server (PID {pid}) using socket file \"{}\"?",
        lock.display(), socket.display()
    )]
    Held {
        /// The lock's file.
        lock: PathBuf,
        /// The socket's file.
        socket: PathBuf,
        /// The process that holds the lock.
        pid: i32,
    },
    /// The file is empty.
    #[error(
        "lock file \"{}\" is empty\n  Either another server is starting, or the lock file is the remnant \
         of a previous server startup crash.", .0.display()
    )]
    Empty(PathBuf),
    /// The file is not a lock file.
    #[error("bogus data in lock file \"{}\": {what}", path.display())]
    Bogus {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A system call failed.
    #[error("could not {what} lock file \"{}\": {source}", path.display())]
    Io {
        /// The operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

/// A lock that this process holds. Dropping it removes the file.
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

/// Creates the file with this process's id and mode 0600. `false`: a file of that name exists.
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

/// Opens the existing file for reading. `None`: the file no longer exists.
fn open(path: &Path) -> Result<Option<File>, SocketLockError> {
    let bogus =
        |what: &str| SocketLockError::Bogus { path: path.to_owned(), what: what.to_owned() };
    let failed = |source| SocketLockError::Io { what: "open", path: path.to_owned(), source };
    // NONBLOCK: opening a named pipe must not block the start.
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
        // A standalone backend of PostgreSQL writes its id as a negative number.
        Ok(pid) if pid != 0 => Ok(pid.saturating_abs()),
        _ => {
            let line: String = line.chars().take(40).collect();
            Err(SocketLockError::Bogus { path: path.to_owned(), what: format!("\"{line}\"") })
        }
    }
}

/// Whether a running process of that id may be a server of the same user. This process and its
/// parent don't count: after a restart of the machine or container they may have the dead server's
/// id.
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
    fn lock_file_has_process_id_and_mode_0600() {
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
        // A dangling link does not create a file at its target.
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
    fn flock_of_another_process_is_ignored() {
        let (_directory, socket, lock) = place();
        fs::write(&lock, "999999999\n").expect("written");
        let file = File::open(&lock).expect("opened");
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).expect("locked");
        SocketLock::take(&socket).expect("replaced");
    }

    #[test]
    fn foreign_file_at_lock_path_is_not_replaced() {
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
