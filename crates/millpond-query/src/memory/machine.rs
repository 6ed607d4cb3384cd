//! How much memory the process may have: the machine's, or less if its control group has a limit.

use std::fs;
use std::path::Path;

/// The bytes of memory that the process may have; 0 if that can't be found out.
pub fn machine_bytes() -> u64 {
    bytes_below(Path::new("/"))
}

/// The same, with the system's files below a directory.
fn bytes_below(root: &Path) -> u64 {
    let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let machine = total_of(&text("proc/meminfo"));
    let limits = text("proc/self/cgroup");
    let limits = limits.lines().filter_map(|line| limit_of_group(root, line));
    limits.chain(machine).min().unwrap_or(0)
}

fn total_of(meminfo: &str) -> Option<u64> {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = total.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes.saturating_mul(1024))
}

/// The limit that a line of `/proc/self/cgroup` leads to: `0::/path` is of version 2,
/// `4:memory:/path` of version 1.
fn limit_of_group(root: &Path, line: &str) -> Option<u64> {
    let (_, rest) = line.split_once(':')?;
    let (controllers, group) = rest.split_once(':')?;
    let (mount, file) = if controllers.is_empty() {
        ("sys/fs/cgroup", "memory.max")
    } else if controllers.split(',').any(|controller| controller == "memory") {
        ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
    } else {
        return None;
    };
    let mount = root.join(mount);
    let group = mount.join(group.trim_start_matches('/'));
    // Every group above has a say. Where the path is that of another name space, the root of the
    // mount is the own group.
    let groups = group.ancestors().take_while(|group| group.starts_with(&mount));
    groups.filter_map(|group| limit_in(&group.join(file))).min()
}

/// `max`, and version 1's largest number, mean that there is none: then it is larger than the
/// machine, or no number.
fn limit_in(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn machine_without_groups_has_its_memory() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(bytes_below(root.path()), 0, "nothing is known");
        let meminfo = "MemTotal:       24105000 kB\nMemFree:  1 kB\n";
        write(root.path(), &[("proc/meminfo", meminfo)]);
        assert_eq!(bytes_below(root.path()), 24_105_000 << 10);
    }

    #[test]
    fn limits_of_version_2_count_with_those_above() {
        let root = tempfile::tempdir().unwrap();
        write(
            root.path(),
            &[
                ("proc/meminfo", "MemTotal: 24105000 kB\n"),
                ("proc/self/cgroup", "0::/a/b\n"),
                ("sys/fs/cgroup/a/memory.max", "734003200\n"),
                ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ],
        );
        assert_eq!(bytes_below(root.path()), 700 << 20);
        // In a container the path may be one outside of it.
        write(
            root.path(),
            &[("proc/self/cgroup", "0::/elsewhere\n"), ("sys/fs/cgroup/memory.max", "4096\n")],
        );
        assert_eq!(bytes_below(root.path()), 4096);
    }

    #[test]
    fn limits_of_version_1_count() {
        let root = tempfile::tempdir().unwrap();
        write(
            root.path(),
            &[
                ("proc/meminfo", "MemTotal: 24105000 kB\n"),
                ("proc/self/cgroup", "5:cpu:/x\n4:hugetlb,memory:/a\n0::/\n"),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
                ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000000\n"),
            ],
        );
        assert_eq!(bytes_below(root.path()), 1_000_000);
    }
}
