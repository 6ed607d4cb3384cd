//! What the heap gives back to the system. It is a process of its own, whose `main` has no other
//! thread.
#![allow(clippy::unwrap_used)]

use millpond_sync::heap::{bound_what_is_kept, give_back_free};

/// Whether the allocator is glibc's.
const IS_GLIBC: bool =
    cfg!(all(target_os = "linux", target_env = "gnu", not(any(miri, tsan, millpond_portable))));
const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

fn main() {
    // Emulators have threads of their own, and not all of them tell how much memory is in use.
    let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    if !IS_GLIBC || threads != 1 || resident().is_none() {
        println!("skipped: the allocator is not glibc's, or the system does not tell what it has");
        assert_eq!(bound_what_is_kept(), IS_GLIBC && threads == 1);
        return;
    }
    assert!(bound_what_is_kept());
    // Threads have arenas of their own.
    std::thread::spawn(the_end_of_an_arena_is_given_back_when_it_is_freed).join().unwrap();
    std::thread::spawn(memory_between_pieces_in_use_is_given_back).join().unwrap();
    std::thread::spawn(nothing_is_set_beside_other_threads).join().unwrap();
}

/// The resident anonymous memory of the process.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<usize>().ok()? * KB)
}

fn pieces(bytes: usize) -> Vec<Option<Vec<u8>>> {
    (0..bytes / KB).map(|_| Some(vec![1; KB])).collect()
}

fn the_end_of_an_arena_is_given_back_when_it_is_freed() {
    // Without the bounds, glibc would from now on keep twice as much.
    drop(vec![1u8; 24 * MB]);
    let before = resident().unwrap();
    // Nothing comes to lie behind them.
    drop(pieces(32 * MB));
    let after = resident().unwrap();
    assert!(after < before + 12 * MB, "{before} bytes, then {after}");
}

fn memory_between_pieces_in_use_is_given_back() {
    // What is left of each megabyte keeps the arena from becoming smaller.
    let mut pieces = pieces(96 * MB);
    pieces.iter_mut().enumerate().filter(|(n, _)| n % 1024 > 0).for_each(|(_, p)| *p = None);
    let before = resident().unwrap();
    give_back_free();
    let after = resident().unwrap();
    assert!(after + 48 * MB < before, "{before} bytes, then {after}");
    assert!(pieces.iter().flatten().all(|piece| piece.len() == KB));
}

fn nothing_is_set_beside_other_threads() {
    assert!(!bound_what_is_kept());
}
