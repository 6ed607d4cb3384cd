//! The data of a COPY FROM STDIN, as it comes from the client.

use super::{Connection, Executed};
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::sink::RowSink;

impl Connection {
    /// Data of a `COPY FROM STDIN`, cut anywhere.
    pub fn copy_data(&mut self, data: &[u8]) -> Result<()> {
        let Some(copy) = &mut self.copy else { return Err(not_copying()) };
        copy.read(&self.session, Some(data)).map_err(|error| self.copy_failed(error))
    }

    /// The end of the data. Carries on with what follows in a simple query.
    pub fn copy_done(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        let Some(copy) = &mut self.copy else { return Err(not_copying()) };
        if let Err(error) = copy.read(&self.session, None) {
            return Err(self.copy_failed(error));
        }
        let Some(copy) = self.copy.take() else { return Err(not_copying()) };
        let tag = copy.end(&mut self.session);
        if self.script.is_none() {
            return self.portal_ended(Some(tag), sink);
        }
        match self.statement_done(tag, sink)? {
            Some(executed) => Ok(executed),
            None => self.run_script(sink),
        }
    }

    /// The client gives up: returns the error to send.
    pub fn copy_fail(&mut self, reason: &str) -> SqlError {
        let message = format!("COPY from stdin failed: {reason}");
        self.copy_failed(SqlError::new(SqlState::QUERY_CANCELED, message))
    }

    fn copy_failed(&mut self, error: SqlError) -> SqlError {
        let Some(copy) = self.copy.take() else { return error };
        let error = copy.failed(&mut self.session, error);
        self.fail();
        self.session.activity.end();
        error
    }
}

fn not_copying() -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, "there is no COPY in progress")
}
