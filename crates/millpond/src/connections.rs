//! The connections of a database, so that others can cancel and end them, and its shutdown can.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::cancel::CancelHandle;
use millpond_query::error::{Result, SqlError, SqlState};

/// The open connections of a database.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    closed: bool,
    /// By process id.
    handles: HashMap<i32, CancelHandle>,
}

/// One connection's place among them, given up when dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    open: Arc<Mutex<Open>>,
    process_id: i32,
}

impl Connections {
    /// Adds a connection, unless the database is shut down.
    pub(crate) fn enter(&self, process_id: i32, handle: &CancelHandle) -> Result<Entry> {
        let mut open = self.open.lock();
        if open.closed {
            return Err(SqlError::fatal(
                SqlState::CANNOT_CONNECT_NOW,
                "the database system is shutting down",
            ));
        }
        open.handles.insert(process_id, handle.clone());
        Ok(Entry { open: Arc::clone(&self.open), process_id })
    }

    /// The handle of the connection with this process id, if it is open.
    pub(crate) fn find(&self, process_id: i32) -> Option<CancelHandle> {
        self.open.lock().handles.get(&process_id).cloned()
    }

    /// Admits no more connections, and ends those that there are: their next statement fails, as
    /// does the running one.
    pub(crate) fn close(&self) {
        let mut open = self.open.lock();
        open.closed = true;
        for handle in open.handles.values() {
            handle.terminate();
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.open.lock().handles.remove(&self.process_id);
    }
}
