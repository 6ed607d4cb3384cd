//! Loom's model of the reclaimer's sleep: whoever takes a frame while it falls asleep is either seen by it or wakes it. A
//! wake-up that is lost is a deadlock, which loom finds.

use crate::reclaim::Demand;
use loom::thread;
use millpond_sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

#[test]
fn a_frame_that_is_taken_wakes_a_reclaimer_that_falls_asleep() {
    loom::model(|| {
        let demand = Arc::new(Demand::with_low_water(1));
        let free = Arc::new(AtomicUsize::new(1));
        let session = thread::spawn({
            let (demand, free) = (Arc::clone(&demand), Arc::clone(&free));
            move || {
                // As a freelist's head is swapped: what follows is ordered by the fence alone.
                free.store(0, Ordering::Relaxed);
                demand.taken(0);
            }
        });
        demand.sleep(|| free.load(Ordering::Relaxed) == 0);
        session.join().unwrap();
    });
}
