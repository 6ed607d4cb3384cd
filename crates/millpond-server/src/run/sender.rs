//! Sending the replies of several connections with one call of the kernel, where it can do that (Linux, with io_uring):
//! see [`millpond_sync::send_batch`] for what that saves. Elsewhere every connection sends its own.

#[cfg(target_os = "linux")]
pub use linux::Sender;
#[cfg(not(target_os = "linux"))]
pub use other::Sender;

#[cfg(target_os = "linux")]
mod linux {
    use crate::backend::Backend;
    use crate::run::event_loop::Slot;
    use crate::wire::buffer::Spare;
    use millpond_sync::send_batch::{Letter, SendBatch};
    use std::os::fd::AsFd;

    /// What a loop sends with. To be made by the loop's own thread.
    pub struct Sender {
        batch: Option<SendBatch>,
    }

    impl Sender {
        /// For so many connections at a time.
        pub fn new(room: usize) -> Self {
            let batch = u32::try_from(room).ok().and_then(|room| {
                let batch = SendBatch::new(room);
                batch.inspect_err(|error| tracing::debug!(%error, "no io_uring to send with")).ok()
            });
            Self { batch }
        }

        /// Sends replies of the connections in `which` slots. Who has more to do then than to wait for its client stays in
        /// `which`, for a turn of its own.
        pub fn send<B: Backend>(
            &mut self,
            slots: &mut [Slot<B>],
            which: &mut Vec<usize>,
            spare: &mut Spare,
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

#[cfg(not(target_os = "linux"))]
mod other {
    use crate::backend::Backend;
    use crate::run::event_loop::Slot;
    use crate::wire::buffer::Spare;

    /// Sends nothing.
    pub struct Sender;

    impl Sender {
        /// For any number of connections.
        pub fn new(_room: usize) -> Self {
            Self
        }

        /// Leaves every connection its turn.
        pub fn send<B: Backend>(
            &mut self,
            _slots: &mut [Slot<B>],
            _which: &mut Vec<usize>,
            _spare: &mut Spare,
        ) {
        }
    }
}
