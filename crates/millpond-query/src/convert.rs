//! The engine's errors as PostgreSQL would say them.

use millpond_buffer::{BufferError, StoreError};
use millpond_engine::recovery::DirectoryError;
use millpond_engine::table::TableError;
use millpond_engine::wal::WalError;
use millpond_engine::{EngineError, TempSpaceExceeded, is_out_of_descriptors};
use millpond_types::DataException;
use millpond_types::numeric::NumericError;
use millpond_types::tuple::EncodeError;

use crate::Value;
use crate::error::{SqlError, SqlState};
use crate::expr::cast;

#[cfg(test)]
mod tests;

impl From<NumericError> for SqlError {
    #[cold]
    fn from(error: NumericError) -> Self {
        DataException::from(error).into()
    }
}

impl From<DataException> for SqlError {
    #[cold]
    fn from(error: DataException) -> Self {
        let fields = error.into_fields();
        let mut sql = SqlError::new(fields.sqlstate, fields.message);
        (sql.detail, sql.hint) = (fields.detail, fields.hint);
        sql
    }
}

/// Whether this asks for a thread that may wait, rather than reporting a failure.
pub fn is_would_block(error: &SqlError) -> bool {
    error.sqlstate == WOULD_BLOCK
}

/// Not an SQLSTATE that a client sees: how "would block" travels through code that returns
/// [`SqlError`].
pub(crate) const WOULD_BLOCK: SqlState = SqlState(*b"-WAIT");
/// Likewise. A plan was made for a definition that is not current any more, or uses an index that
/// is too new for the transaction's snapshot. Made again, it is right.
pub const STALE: SqlState = SqlState(*b"-PLAN");

/// Asks for another plan: this one was made for other values.
pub fn unsuited() -> SqlError {
    SqlError::new(STALE, "the plan was made for other values")
}

/// The request for a thread that may wait.
#[cold]
pub fn would_block() -> SqlError {
    SqlError::new(WOULD_BLOCK, "the operation would have to wait")
}

fn key_list(columns: &[String], values: &[Value]) -> String {
    let values: Vec<String> = values
        .iter()
        .map(|value| match value {
            Value::Null => "null".to_owned(),
            value => cast::to_text(&value.as_datum()),
        })
        .collect();
    format!("Key ({})=({})", columns.join(", "), values.join(", "))
}

impl From<TableError> for SqlError {
    #[cold]
    fn from(error: TableError) -> Self {
        let message = error.to_string();
        match error {
            TableError::DuplicateKey { table, index, columns, values } => {
                SqlError::new(SqlState::UNIQUE_VIOLATION, message)
                    .detail(format!("{} already exists.", key_list(&columns, &values)))
                    .table(table)
                    .constraint(index)
            }
            TableError::NotUnique { table, index, columns, values } => {
                SqlError::new(SqlState::UNIQUE_VIOLATION, message)
                    .detail(format!("{} is duplicated.", key_list(&columns, &values)))
                    .table(table)
                    .constraint(index)
            }
            TableError::NotNull { table, column } => {
                SqlError::new(SqlState::NOT_NULL_VIOLATION, message).table(table).column(column)
            }
            TableError::ContainsNulls { table, column } => {
                SqlError::new(SqlState::NOT_NULL_VIOLATION, message).table(table).column(column)
            }
            TableError::UndefinedRelation(_) => SqlError::new(SqlState::UNDEFINED_TABLE, message),
            TableError::DuplicateRelation(_) => SqlError::new(SqlState::DUPLICATE_TABLE, message),
            TableError::MultiplePrimaryKeys(_) => {
                SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message)
            }
            TableError::RequiredByConstraint { table, index } => {
                SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
                    .hint(format!("You can drop constraint {index} on table {table} instead."))
            }
            TableError::StaleDefinition(_) | TableError::IndexTooNew(_) => {
                SqlError::new(STALE, message)
            }
            TableError::ReadOnly(_) => SqlError::new(SqlState::READ_ONLY_SQL_TRANSACTION, message),
            TableError::InvalidDefinition(_) => {
                SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message)
            }
            TableError::InUse { .. } => SqlError::new(SqlState::OBJECT_IN_USE, message),
            TableError::Encode(EncodeError::TooLong { .. }) => {
                SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
            }
            TableError::Damaged { table, .. } => {
                SqlError::new(SqlState::DATA_CORRUPTED, message).table(table)
            }
            TableError::Encode(_) | TableError::Key(_) => SqlError::internal(message),
        }
    }
}

impl From<EngineError> for SqlError {
    #[cold]
    fn from(error: EngineError) -> Self {
        let message = error.to_string();
        match error {
            EngineError::WouldBlock => would_block(),
            EngineError::Table(error) => error.into(),
            EngineError::Cancelled => SqlError::new(SqlState::QUERY_CANCELED, message),
            EngineError::Deadlock { detail } => SqlError::new(SqlState::DEADLOCK_DETECTED, message)
                .detail(detail)
                .hint("See server log for query details."),
            EngineError::LockTimeout => SqlError::new(SqlState::LOCK_NOT_AVAILABLE, message),
            EngineError::LockNotAvailable { .. } => {
                SqlError::new(SqlState::LOCK_NOT_AVAILABLE, message)
            }
            EngineError::SerializationFailure { .. } => {
                SqlError::new(SqlState::SERIALIZATION_FAILURE, message)
            }
            EngineError::UniqueViolation { .. } => {
                SqlError::new(SqlState::UNIQUE_VIOLATION, message)
            }
            EngineError::IndexRowTooLarge { .. } | EngineError::LimitExceeded { .. } => {
                SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
            }
            EngineError::RowTooLarge { .. } => {
                SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                    .hint("Rows that do not fit into one page of 8 kB are not supported yet.")
            }
            EngineError::Corruption { .. } => SqlError::new(SqlState::DATA_CORRUPTED, message),
            EngineError::InDoubt { .. } => {
                SqlError::new(SqlState::TRANSACTION_RESOLUTION_UNKNOWN, message)
            }
            EngineError::TooManySessions => {
                SqlError::fatal(SqlState::TOO_MANY_CONNECTIONS, message)
            }
            EngineError::ShuttingDown => SqlError::fatal(SqlState::CANNOT_CONNECT_NOW, message),
            EngineError::Directory(
                DirectoryError::InUse { .. } | DirectoryError::AlreadyOpen { .. },
            ) => SqlError::fatal(SqlState::LOCK_FILE_EXISTS, message),
            EngineError::Buffer(error) => buffer_error(error, message),
            EngineError::DamagedFile { source, .. } => buffer_error(source, message),
            EngineError::Wal(error) => wal_error(error, message),
            EngineError::Trace { source, .. } => io_error(&source, message),
            EngineError::TemporaryFile { what, source } => temporary_file(what, &source),
            EngineError::Redo(_) => SqlError::new(SqlState::DATA_CORRUPTED, message),
            EngineError::Directory(error) => directory_error(&error, message),
            _ => SqlError::internal(message),
        }
    }
}

fn directory_error(error: &DirectoryError, message: String) -> SqlError {
    let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
    match error {
        DirectoryError::Ownership { .. } => SqlError::fatal(state, message)
            .hint("The server must be started by the user that owns the data directory."),
        DirectoryError::Permissions { .. } => SqlError::fatal(state, message)
            .detail("Permissions should be u=rwx (0700) or u=rwx,g=rx (0750)."),
        _ => SqlError::internal(message),
    }
}

/// The code of what the system, or the bound of temporary files, has refused.
pub(crate) fn io_state(error: &std::io::Error) -> SqlState {
    if inner_of(error).is_some_and(|inner| inner.is::<TempSpaceExceeded>()) {
        return SqlState::CONFIGURATION_LIMIT_EXCEEDED;
    }
    if is_out_of_descriptors(error) {
        return SqlState::INSUFFICIENT_RESOURCES;
    }
    match error.kind() {
        std::io::ErrorKind::OutOfMemory => SqlState::OUT_OF_MEMORY,
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => SqlState::DISK_FULL,
        _ => SqlState::IO_ERROR,
    }
}

fn inner_of(error: &std::io::Error) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
    error.get_ref()
}

/// An error of the system, as PostgreSQL names it.
fn io_error(source: &std::io::Error, message: String) -> SqlError {
    match io_state(source) {
        SqlState::INSUFFICIENT_RESOURCES => SqlError::new(
            SqlState::INSUFFICIENT_RESOURCES,
            format!("out of file descriptors: {message}"),
        )
        .hint("Raise the limit of open files (ulimit -n), or use fewer connections."),
        state => SqlError::new(state, message),
    }
}

/// A temporary file can't be used; beyond `temp_file_limit` that is all there is to say.
pub fn temporary_file(what: &str, source: &std::io::Error) -> SqlError {
    match io_state(source) {
        SqlState::CONFIGURATION_LIMIT_EXCEEDED => {
            SqlError::new(SqlState::CONFIGURATION_LIMIT_EXCEEDED, source.to_string())
        }
        _ => io_error(source, format!("could not {what} a temporary file: {source}")),
    }
}

fn wal_error(error: WalError, message: String) -> SqlError {
    let state = match &error {
        WalError::WouldBlock => return would_block(),
        WalError::DiskFull(_) => SqlState::DISK_FULL,
        WalError::Io { source, .. } => return io_error(source, message),
        WalError::Stopped { .. } => SqlState::IO_ERROR,
        WalError::Record(_) => SqlState::PROGRAM_LIMIT_EXCEEDED,
        WalError::Incompatible { .. } => SqlState::FEATURE_NOT_SUPPORTED,
        _ => SqlState::DATA_CORRUPTED,
    };
    SqlError::new(state, message)
}

fn buffer_error(error: BufferError, message: String) -> SqlError {
    let state = match &error {
        BufferError::WouldBlock => return would_block(),
        BufferError::NoUnpinnedBuffers { .. } => SqlState::INSUFFICIENT_RESOURCES,
        BufferError::Size { .. } => SqlState::INVALID_PARAMETER_VALUE,
        BufferError::Shrinking { .. } => SqlState::OBJECT_IN_USE,
        BufferError::Checksum { .. }
        | BufferError::Zeroed { .. }
        | BufferError::OtherVersion { .. }
        | BufferError::BeyondLog { .. }
        | BufferError::CutShort { .. }
        | BufferError::TooLong { .. }
        | BufferError::Damaged { .. }
        | BufferError::BeyondEnd { .. } => SqlState::DATA_CORRUPTED,
        BufferError::Dropped { .. } => SqlState::UNDEFINED_TABLE,
        BufferError::RelationFull { .. } => SqlState::PROGRAM_LIMIT_EXCEEDED,
        BufferError::Store(StoreError::Io { source, .. }) => return io_error(source, message),
        BufferError::Store(StoreError::Missing { .. }) => SqlState::UNDEFINED_FILE,
        BufferError::Store(StoreError::BeyondEnd { .. }) => SqlState::DATA_CORRUPTED,
        BufferError::Store(_) | BufferError::Log(_) => SqlState::IO_ERROR,
        _ => SqlState::INTERNAL_ERROR,
    };
    SqlError::new(state, message)
}
