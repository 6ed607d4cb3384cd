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
