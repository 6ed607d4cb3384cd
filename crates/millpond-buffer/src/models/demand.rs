//! A loom model of the reclaimer's sleep. If a session takes a frame meanwhile, the reclaimer sees
//! that, or the session wakes it. Loom finds a lost wake-up as a deadlock.

use crate::core::demand::Demand;
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
                // Relaxed, like the swap of a freelist's head: only the fence orders what follows.
                free.store(0, Ordering::Relaxed);
                demand.taken(0);
            }
        });
        demand.sleep(|| free.load(Ordering::Relaxed) == 0);
        session.join().unwrap();
    });
}
