//! The heap of the process: gives free memory back to the system.
//!
//! glibc keeps what was freed between pieces that are in use. After a statement with many small
//! pieces, that may be hundreds of megabytes. The next statement takes its memory beside them, so
//! the process outgrows the bound of its control group although no statement outgrew its own.
//!
//! It also keeps what was freed behind them: up to 64 MB for each arena, of which there may be
//! eight for each core. So a server whose statements run now on one thread and now on another
//! grows for hours, until each arena has once had a large statement.
//!
//! Other allocators decide for themselves, so here nothing happens for them.
#![allow(unsafe_code)]

/// Gives back what the allocator holds and no thread uses. It takes the locks of all of the
/// allocator's arenas, one after the other, and milliseconds for each 100 MB that it gives back. So
/// it is for times after much memory was freed.
pub fn give_back_free() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri), not(millpond_portable)))]
    // SAFETY: the function may be called at any time from any thread. Its argument is the number of
    // bytes that the heap's end may keep.
    unsafe {
        libc::malloc_trim(0);
    }
}

// ThreadSanitizer brings an allocator of its own.
#[cfg(test)]
#[cfg(all(target_os = "linux", target_env = "gnu", not(any(miri, tsan, millpond_portable))))]
mod tests {
    use super::give_back_free;

    /// The memory that the process has of the system, in kB.
    fn resident_kb() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    #[test]
    fn memory_between_pieces_in_use_is_given_back() {
        const KB: usize = 1 << 10;
        const PIECES: usize = 96 << 10;
        // What is left of each megabyte keeps the heap from becoming shorter.
        let mut pieces: Vec<_> = (0..PIECES).map(|_| Some(vec![1u8; KB])).collect();
        pieces.iter_mut().enumerate().filter(|(n, _)| n % 1024 > 0).for_each(|(_, p)| *p = None);
        let before = resident_kb();
        give_back_free();
        let after = resident_kb();
        assert!(after + PIECES / 2 < before, "{before} kB, then {after}");
        assert!(pieces.iter().flatten().all(|piece| piece.len() == KB));
    }
}
