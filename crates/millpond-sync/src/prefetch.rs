//! Asking for memory ahead of its use.
//!
//! **Role.** Who serves hundreds of sessions in turn finds that the memory of each has left the processor's near caches since
//! its last turn. The turns are known some time before, so the lines can be on their way meanwhile. A prefetch reads
//! nothing that the program could see, has no memory ordering, writes nothing and cannot fail: on an address that is not
//! mapped it does nothing. Where the processor has no such instruction that we know of, nor have these functions an effect.

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Asks for all lines of a value: itself, not what it points to.
#[inline]
pub fn prefetch<T: ?Sized>(value: &T) {
    let start = std::ptr::from_ref(value).cast::<u8>();
    let first = start.addr() % LINE_BYTES;
    for at in (0..first + size_of_val(value)).step_by(LINE_BYTES) {
        prefetch_line(start.wrapping_add(at.saturating_sub(first)));
    }
}

#[cfg(all(target_arch = "x86_64", not(any(miri, loom, shuttle))))]
#[inline]
#[allow(unsafe_code)]
fn prefetch_line(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch is a hint: it accesses no memory as far as the program can tell, whatever the address.
    #[allow(unused_unsafe)]
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(address.cast::<i8>());
    }
}

#[cfg(not(all(target_arch = "x86_64", not(any(miri, loom, shuttle)))))]
#[inline]
fn prefetch_line(_address: *const u8) {}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn anything_can_be_asked_for() {
        prefetch(&[7u8; 1000]);
        prefetch(&[0u8; 0][..]);
        prefetch("text");
        prefetch_line(std::ptr::null());
        prefetch_line(std::ptr::without_provenance(usize::MAX));
    }
}
