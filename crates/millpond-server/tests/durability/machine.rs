//! What fails in the tests: the server's process, or its disk.

use std::path::{Path, PathBuf};
use std::process::Command;

use rand::Rng;
use rand::rngs::SmallRng;

use crate::common::server::ServerProcess;

/// A place for a data directory, with a way to fail.
pub trait Machine {
    /// The path of the data directory.
    fn data(&self) -> PathBuf;

    /// Ends the server without warning.
    fn fail(&mut self, server: &mut ServerProcess, random: &mut SmallRng);

    /// Ends a server that may still be starting. Afterwards the machine is up again.
    fn fail_early(&mut self, server: std::process::Child, random: &mut SmallRng);

    /// Brings the machine up again, with what was durable.
    fn come_up(&mut self);
}

/// A directory whose server is killed. Written data stays in the system's cache.
pub struct Directory(tempfile::TempDir);

impl Directory {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl Machine for Directory {
    fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    fn fail(&mut self, server: &mut ServerProcess, _: &mut SmallRng) {
        server.child.kill().unwrap();
        server.child.wait().unwrap();
    }

    fn fail_early(&mut self, mut server: std::process::Child, _: &mut SmallRng) {
        server.kill().unwrap();
        server.wait().unwrap();
    }

    fn come_up(&mut self) {}
}

/// An ext4 file system in a file. A forced shutdown of the file system loses what was not synced.
pub struct Ext4 {
    folder: tempfile::TempDir,
}

impl Ext4 {
    pub fn new() -> Self {
        let this = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(this.mount_point()).unwrap();
        run("truncate", &["-s", "2G"], &this.image());
        run("mkfs.ext4", &["-qF"], &this.image());
        this.mount();
        this
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn mount_point(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    fn mount(&self) {
        let image = self.image();
        run("mount", &["-o", "loop", image.to_str().unwrap()], &self.mount_point());
    }

    /// `FS_IOC_SHUTDOWN`: flushes the journal first (1), or loses it too (2).
    fn cut(&self, random: &mut SmallRng) {
        const SHUTDOWN: &str = "import fcntl, os, struct, sys\n\
            disk = os.open(sys.argv[2], os.O_RDONLY)\n\
            fcntl.ioctl(disk, 0x8004587d, struct.pack('I', int(sys.argv[1])))";
        let how = if random.random_bool(0.75) { "2" } else { "1" };
        run("python3", &["-c", SHUTDOWN, how], &self.mount_point());
    }

    fn unmount(&self) {
        let unmounted = Command::new("umount").arg(self.mount_point()).status().unwrap();
        assert!(unmounted.success(), "umount");
    }
}

impl Machine for Ext4 {
    fn data(&self) -> PathBuf {
        self.mount_point().join("data")
    }

    fn fail(&mut self, server: &mut ServerProcess, random: &mut SmallRng) {
        self.cut(random);
        // The server may see errors of the dead disk for a while before it is killed.
        let longest = [0, 50, 500][random.random_range(0..3)];
        std::thread::sleep(std::time::Duration::from_millis(longest));
        server.child.kill().unwrap();
        server.child.wait().unwrap();
    }

    fn fail_early(&mut self, mut server: std::process::Child, random: &mut SmallRng) {
        let cut = random.random_bool(0.5);
        if cut {
            self.cut(random);
        }
        server.kill().unwrap();
        server.wait().unwrap();
        if cut {
            self.come_up();
        }
    }

    fn come_up(&mut self) {
        self.unmount();
        self.mount();
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        // After a failed assertion a server may keep the file system busy until this process ends.
        let _ = Command::new("umount").args(["-l"]).arg(self.mount_point()).status();
    }
}

fn run(program: &str, arguments: &[&str], last: &Path) {
    let done = Command::new(program).args(arguments).arg(last).status();
    assert!(done.is_ok_and(|status| status.success()), "{program} {arguments:?} {last:?}");
}
