//! Who can't go on just now: it is told so, or waits and says what for.

use super::support::*;
use crate::frame::{FENCED, NoPin};
use crate::*;

/// A session has a page pinned, and believes of another, which had the frame before, that it is
/// there.
#[test]
fn a_second_pin_looks_at_the_page_too() {
    let Bench { pool, .. } = bench(2, 2);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    let pin = session.pin(&rel, BlockNumber(0), Wait::Allowed).unwrap();
    let believed = REL.page(BlockNumber(1));
    let again = session.pin_resident(pin.frame() as u32, believed, None);
    assert_eq!(again, Err(NoPin::Changed));
    drop(pin);
    assert_eq!(session.pinned_pages(), 0);
}

/// A frame that this thread is about to fill may have been taken from its page by another.
#[test]
fn a_frame_is_fenced_before_it_is_filled() {
    let Bench { pool, .. } = bench(2, 1);
    let session = pool.session().unwrap();
    let before = FENCED.get();
    drop(session.take_frame(Wait::Allowed, None).unwrap());
    assert_eq!(FENCED.get() - before, 1);
}
