//! Sends the replies of several connections with one system call, on Linux with io_uring;
//! [`millpond_sync::send_batch`] explains the gain. Elsewhere every connection sends its own.

#[cfg(all(target_os = "linux", not(millpond_portable)))]
pub use linux::Sender;
#[cfg(not(all(target_os = "linux", not(millpond_portable))))]
pub use other::Sender;

#[cfg(all(target_os = "linux", not(millpond_portable)))]
mod linux {
    use crate::backend::Backend;
    use crate::run::event_loop::Slot;
    use crate::wire::buffer::SpareBuffers;
    use millpond_sync::send_batch::{Letter, SendBatch};
    use std::os::fd::AsFd;

    /// The sender of a loop. The loop's own thread must create it.
    pub struct Sender {
        batch: Option<SendBatch>,
    }

    impl Sender {
        /// Has room for the replies of `room` connections at a time.
        pub fn new(room: usize) -> Self {
            let batch = u32::try_from(room).ok().and_then(|room| {
                let batch = SendBatch::new(room);
                batch.inspect_err(|error| tracing::debug!(%error, "no io_uring to send with")).ok()
            });
            Self { batch }
        }

        /// Sends the replies of the connections in the slots `which`. A connection that has more to
        /// do than wait for its client stays in `which`, for its own turn.
        pub fn send<B: Backend>(
            &mut self,
            slots: &mut [Slot<B>],
            which: &mut Vec<usize>,
            spare: &mut SpareBuffers,
        ) {
            let Some(batch) = &mut self.batch else { return };
            let mut taken = Vec::with_capacity(which.len());
            which.retain(|&slot| {
                if taken.len() < batch.room()
                    && let Some(Slot::Here(conn)) = slots.get_mut(slot)
                    && let Some((bytes, start)) = conn.take_replies()
                {
                    taken.push((slot, bytes, start));
                    return false;
                }
                true
            });
            let mut letters = Vec::with_capacity(taken.len());
            let mut senders = Vec::with_capacity(taken.len());
            for (slot, bytes, start) in taken {
                if let Some(Slot::Here(conn)) = slots.get(slot) {
                    letters.push(Letter::new(conn.socket().as_fd(), bytes, start));
                    senders.push(slot);
                }
            }
            batch.send(&mut letters);
            let deliveries: Vec<_> = letters.into_iter().map(Letter::delivery).collect();
            for (slot, delivery) in senders.into_iter().zip(deliveries) {
                if let Some(Slot::Here(conn)) = slots.get_mut(slot)
                    && !conn.replies_sent(delivery.bytes, delivery.rest, delivery.result, spare)
                {
                    which.push(slot);
                }
            }
        }
    }
}

#[cfg(not(all(target_os = "linux", not(millpond_portable))))]
mod other {
    use crate::backend::Backend;
    use crate::run::event_loop::Slot;
    use crate::wire::buffer::SpareBuffers;

    /// Sends nothing.
    pub struct Sender;

    impl Sender {
        /// For any number of connections.
        pub fn new(_room: usize) -> Self {
            Self
        }

        /// Leaves all connections in `which`, for their own turns.
        pub fn send<B: Backend>(
            &mut self,
            _slots: &mut [Slot<B>],
            _which: &mut Vec<usize>,
            _spare: &mut SpareBuffers,
        ) {
        }
    }
}
