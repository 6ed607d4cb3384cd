//! Freelists: a frame's next owner sees what its last owner did, and no frame has two owners.

use super::Unshared;
use super::check;
use crate::core::frame::Frame;
use crate::core::freelist::Freelists;
use loom::thread;
use std::sync::Arc;

/// Two frames, and a value per frame that its owner writes.
struct Shared {
    lists: Freelists,
    frames: [Frame; 2],
    owned: [Unshared; 2],
}

impl Shared {
    fn new() -> Arc<Self> {
        let (lists, frames) = (Freelists::new(1), [Frame::new(), Frame::new()]);
        lists.push(0, &frames, &[0, 1]);
        Arc::new(Self { lists, frames, owned: Default::default() })
    }

    /// Takes a free frame and uses it.
    fn pop(&self) -> Option<u32> {
        let popped = self.lists.pop(0, &self.frames)?.frame;
        self.owned[popped as usize].set(1);
        Some(popped)
    }

    fn push(&self, frame: Option<u32>) {
        self.lists.push(0, &self.frames, frame.as_slice());
    }
}

fn beside(preemptions: usize, one: fn(&Shared), other: fn(&Shared)) {
    check(preemptions, move || {
        let shared = Shared::new();
        let theirs = Arc::clone(&shared);
        let thread = thread::spawn(move || one(&theirs));
        other(&shared);
        thread.join().unwrap();
    });
}

#[test]
fn an_owner_sees_what_the_last_one_did() {
    let use_twice = |shared: &Shared| {
        for _ in 0..2 {
            let popped = shared.pop();
            shared.push(popped);
        }
    };
    beside(3, use_twice, use_twice);
}

/// One thread is about to take the first frame. The other takes both and gives the first back.
#[test]
fn a_list_that_was_emptied_and_refilled() {
    let take_two = |shared: &Shared| {
        shared.pop();
        shared.pop();
    };
    let give_back_one = |shared: &Shared| {
        let first = shared.pop();
        shared.pop();
        shared.push(first);
    };
    beside(3, take_two, give_back_one);
}
