//! The heap of the process: bounds what the allocator keeps, and gives free memory back to the
//! system.
//!
//! glibc keeps what was freed between pieces that are in use. After a statement with many small
//! pieces, that may be hundreds of megabytes. The next statement takes its memory beside them, so
//! the process outgrows the bound of its control group although no statement outgrew its own.
//! [`give_back_free`] returns this memory.
//!
//! It also keeps what was freed at the end of an arena. It makes up to eight arenas for each core.
//! At first each keeps 128 kB, but up to 64 MB after larger pieces were freed. In a thread's arena
//! nothing returns this later, so [`bound_what_is_kept`] says how much it may be.
//!
//! Other allocators decide for themselves, so here nothing happens for them.
#![allow(unsafe_code)]

/// Free memory at the end of an arena, above which the arena becomes smaller.
#[cfg(all(target_os = "linux", target_env = "gnu", not(miri), not(millpond_portable)))]
const KEPT_BYTES: i32 = 8 << 20;
/// Larger pieces have memory of their own, which the system gets back as soon as they are freed. A
/// growing one is moved by the system, which copies nothing.
#[cfg(all(target_os = "linux", target_env = "gnu", not(miri), not(millpond_portable)))]
const OWN_MEMORY_BYTES: i32 = 4 << 20;

/// Bounds what each arena of the allocator keeps at its end, for the whole process. Returns whether
/// that was done. It is not done if the process has a second thread, nor for another allocator.
pub fn bound_what_is_kept() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri), not(millpond_portable)))]
    if is_the_only_thread() {
        // SAFETY: glibc wants no other thread to allocate meanwhile. The only thread is here, as
        // the line above found, and starts none. A value that glibc refuses leaves all as it was.
        return unsafe {
            // Either of them keeps glibc from changing both.
            libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_MEMORY_BYTES) == 1
                && libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES) == 1
        };
    }
    false
}

/// Whether the process has no other thread; false if the system does not say.
#[cfg(all(target_os = "linux", target_env = "gnu", not(miri), not(millpond_portable)))]
fn is_the_only_thread() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|mut threads| {
        threads.next().is_some_and(|thread| thread.is_ok()) && threads.next().is_none()
    })
}

/// Gives back what the allocator holds between pieces that are in use. It takes the locks of all of
/// the allocator's arenas, one after the other, and asks the system once for each free piece of a
/// page or more. That is milliseconds, so it is for times after much memory was freed, or once a
/// minute.
pub fn give_back_free() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri), not(millpond_portable)))]
    // SAFETY: the function may be called at any time from any thread. Its argument is the number of
    // bytes that the heap's end may keep.
    unsafe {
        libc::malloc_trim(0);
    }
}
