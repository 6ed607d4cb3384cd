//! The table that is being vacuumed in the background, and how to stop that.

use millpond_sync::sync::Mutex;

use crate::ids::Oid;
use crate::proc::{Interrupt, InterruptHandle};

/// The table that is being vacuumed in the background, and the handle of the vacuum's session.
#[derive(Default)]
pub(crate) struct CurrentVacuum(Mutex<Option<(Oid, InterruptHandle)>>);

impl CurrentVacuum {
    /// The vacuum of a table begins.
    pub(crate) fn begin(&self, table: Oid, interrupts: InterruptHandle) {
        *self.0.lock() = Some((table, interrupts));
    }

    /// The vacuum has ended.
    pub(crate) fn end(&self) {
        *self.0.lock() = None;
    }

    /// Interrupts the vacuum of this table, if one is running.
    pub(crate) fn cancel(&self, table: Oid) {
        if let Some((current, interrupts)) = &*self.0.lock()
            && *current == table
        {
            interrupts.interrupt(Interrupt::Cancel);
        }
    }
}
