//! A frame that retires by a size from before the pool grew becomes free again, exactly once.

use super::check;
use crate::core::frame::Frame;
use crate::core::freelist::Freelists;
use crate::core::size::Size;
use loom::thread;
use std::sync::Arc;

#[test]
fn a_frame_that_retires_beside_growth_is_free_again() {
    check(3, || {
        let frames = Arc::new([Frame::new(), Frame::new()]);
        let (size, lists) = (Arc::new(Size::new()), Arc::new(Freelists::new(1)));
        size.set(1);
        let owner = thread::spawn({
            let (frames, size, lists) =
                (Arc::clone(&frames), Arc::clone(&size), Arc::clone(&lists));
            move || size.give_back(&lists, 0, &*frames, &[1])
        });
        size.set(2);
        Size::bring_back(&lists, 0, &*frames, 1..2, |_| false);
        owner.join().unwrap();
        let free = lists.pop(0, &*frames).map(|popped| popped.frame);
        assert_eq!(free, Some(1), "it is lost");
        assert!(lists.pop(0, &*frames).is_none(), "it is free twice");
    });
}
