//! Searching a page, in either form of slots.

use std::cmp::Ordering;

use millpond_sync::mutant;

use super::PageRead;
use super::form::Form;
use super::item::Target;
use super::layout::{COUNT, PREFIX_LEN};

/// Where the search of heads begins.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// Where the head would be if heads were spread evenly.
    Interpolated,
    /// At the lowest slot, because the result is probably close to it.
    Low,
}

/// The first slot, from `from` on, whose comparison with the target does not satisfy `before`.
#[inline(always)]
pub(super) fn partition<F: Form, P: PageRead + ?Sized>(
    page: &P,
    from: usize,
    target: Target<'_>,
    before: fn(Ordering) -> bool,
    start: Start,
) -> usize {
    let count = usize::from(page.u16(COUNT)).min(F::MAX_SLOTS).max(from);
    let prefix = usize::from(page.u16(PREFIX_LEN));
    let mut suffix = target.key;
    if prefix != 0 {
        match F::compare_prefix(page, prefix, target.key) {
            Ordering::Less => return count,
            Ordering::Greater => return from,
            Ordering::Equal => suffix = target.key.get(prefix..).unwrap_or(&[]),
        }
    }
    let head = F::head_of(suffix);
    let mut low = match start {
        Start::Interpolated => head_partition::<F, P>(page, from, count, head),
        Start::Low => {
            let part = upwards::<F, P>(page, (from, count), 4, head);
            binary_search::<F, P>(page, part, head)
        }
    };
    // Heads from `low` on are equal or greater. Mostly one comparison decides.
    let mut high = count;
    let mut probe = low;
    while low < high {
        let slot = F::slot(page, probe);
        let keep = F::head(slot) == head && {
            let rest = F::rest(page, slot);
            let key_order = F::compare_key_rest(page, &rest, suffix);
            let tid_order = || match mutant!("btree-order-without-tid") {
                true => Ordering::Equal,
                false => F::tid(page, slot, &rest).cmp(&target.tid),
            };
            before(key_order.then_with(tid_order))
        };
        if keep {
            low = probe + 1;
        } else {
            high = probe;
        }
        probe = low + (high - low) / 2;
    }
    low
}

/// The first slot in `from..count` whose head is not less than `head`.
#[inline(always)]
fn head_partition<F: Form, P: PageRead + ?Sized>(
    page: &P,
    from: usize,
    count: usize,
    head: u64,
) -> usize {
    let (mut low, mut high) = (from, count);
    if high - low > 16 {
        // The search starts where the head would be if heads were spread evenly, and goes outwards
        // in doubling steps. On evenly spread keys this touches two or three cache lines. On others
        // it costs a few steps more than binary search.
        let (first, last) = (F::head_at(page, low), F::head_at(page, high - 1));
        if head <= first {
            return low;
        }
        if head > last {
            return high;
        }
        let share = (head - first) as f64 / (last - first) as f64;
        let guess = (low + (share * (high - 1 - low) as f64) as usize).min(high - 1);
        let mut step = 1;
        if F::head_at(page, guess) < head {
            (low, high) = upwards::<F, P>(page, (guess + 1, high), step, head);
        } else {
            high = guess;
            while high - low > step {
                if F::head_at(page, high - step) < head {
                    low = high - step + 1;
                    break;
                }
                high -= step;
                step *= 2;
            }
        }
    }
    binary_search::<F, P>(page, (low, high), head)
}

/// Narrows the part in which the first slot lies whose head is not less than `head`: in doubling
/// steps from the low end.
#[inline(always)]
fn upwards<F: Form, P: PageRead + ?Sized>(
    page: &P,
    (mut low, high): (usize, usize),
    mut step: usize,
    head: u64,
) -> (usize, usize) {
    while low + step < high {
        if F::head_at(page, low + step) >= head {
            return (low, low + step);
        }
        low += step + 1;
        step *= 2;
    }
    (low, high)
}

#[inline(always)]
fn binary_search<F: Form, P: PageRead + ?Sized>(
    page: &P,
    (mut low, mut high): (usize, usize),
    head: u64,
) -> usize {
    while low < high {
        let middle = low + (high - low) / 2;
        if F::head_at(page, middle) < head {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
