//! SQLSTATE codes, named as PostgreSQL names them.

use std::fmt;

/// A five-character SQLSTATE code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SqlState(pub [u8; 5]);

impl SqlState {
    /// The code as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("XX000")
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqlState({})", self.as_str())
    }
}

#[allow(missing_docs, reason = "the names are PostgreSQL's, and say what they mean")]
impl SqlState {
    pub const SUCCESSFUL_COMPLETION: SqlState = SqlState(*b"00000");
    pub const WARNING: SqlState = SqlState(*b"01000");
    pub const CONNECTION_FAILURE: SqlState = SqlState(*b"08006");
    pub const TRANSACTION_RESOLUTION_UNKNOWN: SqlState = SqlState(*b"08007");
    pub const PROTOCOL_VIOLATION: SqlState = SqlState(*b"08P01");
    pub const FEATURE_NOT_SUPPORTED: SqlState = SqlState(*b"0A000");
    pub const CARDINALITY_VIOLATION: SqlState = SqlState(*b"21000");
    pub const DATA_EXCEPTION: SqlState = SqlState(*b"22000");
    pub const STRING_DATA_RIGHT_TRUNCATION: SqlState = SqlState(*b"22001");
    pub const INVALID_TABLESAMPLE_REPEAT: SqlState = SqlState(*b"2202G");
    pub const INVALID_TABLESAMPLE_ARGUMENT: SqlState = SqlState(*b"2202H");
    pub const NUMERIC_VALUE_OUT_OF_RANGE: SqlState = SqlState(*b"22003");
    pub const NULL_VALUE_NOT_ALLOWED: SqlState = SqlState(*b"22004");
    pub const UNTRANSLATABLE_CHARACTER: SqlState = SqlState(*b"22P05");
    pub const INVALID_DATETIME_FORMAT: SqlState = SqlState(*b"22007");
    pub const DATETIME_FIELD_OVERFLOW: SqlState = SqlState(*b"22008");
    pub const INVALID_TIME_ZONE_DISPLACEMENT_VALUE: SqlState = SqlState(*b"22009");
    pub const DIVISION_BY_ZERO: SqlState = SqlState(*b"22012");
    pub const INTERVAL_FIELD_OVERFLOW: SqlState = SqlState(*b"22015");
    pub const CHARACTER_NOT_IN_REPERTOIRE: SqlState = SqlState(*b"22021");
    pub const INVALID_PRECEDING_OR_FOLLOWING_SIZE: SqlState = SqlState(*b"22013");
    pub const INVALID_ARGUMENT_FOR_NTILE_FUNCTION: SqlState = SqlState(*b"22014");
    pub const INVALID_ARGUMENT_FOR_NTH_VALUE_FUNCTION: SqlState = SqlState(*b"22016");
    pub const INVALID_PARAMETER_VALUE: SqlState = SqlState(*b"22023");
    pub const INVALID_ESCAPE_SEQUENCE: SqlState = SqlState(*b"22025");
    pub const SUBSTRING_ERROR: SqlState = SqlState(*b"22011");
    pub const INVALID_ARGUMENT_FOR_LOGARITHM: SqlState = SqlState(*b"2201E");
    pub const INVALID_ARGUMENT_FOR_POWER_FUNCTION: SqlState = SqlState(*b"2201F");
    pub const INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION: SqlState = SqlState(*b"2201G");
    pub const INVALID_REGULAR_EXPRESSION: SqlState = SqlState(*b"2201B");
    pub const INVALID_USE_OF_ESCAPE_CHARACTER: SqlState = SqlState(*b"2200C");
    pub const ARRAY_SUBSCRIPT_ERROR: SqlState = SqlState(*b"2202E");
    pub const INVALID_ROW_COUNT_IN_LIMIT_CLAUSE: SqlState = SqlState(*b"2201W");
    pub const INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE: SqlState = SqlState(*b"2201X");
    pub const INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION: SqlState = SqlState(*b"22031");
    pub const INVALID_SQL_JSON_SUBSCRIPT: SqlState = SqlState(*b"22033");
    pub const NON_NUMERIC_SQL_JSON_ITEM: SqlState = SqlState(*b"22036");
    pub const SINGLETON_SQL_JSON_ITEM_REQUIRED: SqlState = SqlState(*b"22038");
    pub const SQL_JSON_ARRAY_NOT_FOUND: SqlState = SqlState(*b"22039");
    pub const SQL_JSON_MEMBER_NOT_FOUND: SqlState = SqlState(*b"2203A");
    pub const SQL_JSON_NUMBER_NOT_FOUND: SqlState = SqlState(*b"2203B");
    pub const SQL_JSON_OBJECT_NOT_FOUND: SqlState = SqlState(*b"2203C");
    pub const INVALID_TEXT_REPRESENTATION: SqlState = SqlState(*b"22P02");
    pub const INVALID_BINARY_REPRESENTATION: SqlState = SqlState(*b"22P03");
    pub const BAD_COPY_FILE_FORMAT: SqlState = SqlState(*b"22P04");
    pub const NONSTANDARD_USE_OF_ESCAPE_CHARACTER: SqlState = SqlState(*b"22P06");
    pub const NOT_NULL_VIOLATION: SqlState = SqlState(*b"23502");
    pub const UNIQUE_VIOLATION: SqlState = SqlState(*b"23505");
    pub const ACTIVE_SQL_TRANSACTION: SqlState = SqlState(*b"25001");
    pub const READ_ONLY_SQL_TRANSACTION: SqlState = SqlState(*b"25006");
    pub const NO_ACTIVE_SQL_TRANSACTION: SqlState = SqlState(*b"25P01");
    pub const IN_FAILED_SQL_TRANSACTION: SqlState = SqlState(*b"25P02");
    pub const IDLE_IN_TRANSACTION_SESSION_TIMEOUT: SqlState = SqlState(*b"25P03");
    pub const INVALID_SQL_STATEMENT_NAME: SqlState = SqlState(*b"26000");
    pub const INVALID_AUTHORIZATION_SPECIFICATION: SqlState = SqlState(*b"28000");
    pub const DEPENDENT_OBJECTS_STILL_EXIST: SqlState = SqlState(*b"2BP01");
    pub const INVALID_CURSOR_NAME: SqlState = SqlState(*b"34000");
    pub const UNDEFINED_DATABASE: SqlState = SqlState(*b"3D000");
    pub const INVALID_SCHEMA_NAME: SqlState = SqlState(*b"3F000");
    pub const EVENT_TRIGGER_PROTOCOL_VIOLATED: SqlState = SqlState(*b"39P03");
    pub const SERIALIZATION_FAILURE: SqlState = SqlState(*b"40001");
    pub const DEADLOCK_DETECTED: SqlState = SqlState(*b"40P01");
    pub const INSUFFICIENT_PRIVILEGE: SqlState = SqlState(*b"42501");
    pub const SYNTAX_ERROR: SqlState = SqlState(*b"42601");
    pub const INVALID_NAME: SqlState = SqlState(*b"42602");
    pub const DUPLICATE_COLUMN: SqlState = SqlState(*b"42701");
    pub const AMBIGUOUS_COLUMN: SqlState = SqlState(*b"42702");
    pub const UNDEFINED_COLUMN: SqlState = SqlState(*b"42703");
    pub const UNDEFINED_OBJECT: SqlState = SqlState(*b"42704");
    pub const DUPLICATE_ALIAS: SqlState = SqlState(*b"42712");
    pub const GROUPING_ERROR: SqlState = SqlState(*b"42803");
    pub const DATATYPE_MISMATCH: SqlState = SqlState(*b"42804");
    pub const WINDOWING_ERROR: SqlState = SqlState(*b"42P20");
    pub const INVALID_RECURSION: SqlState = SqlState(*b"42P19");
    pub const WRONG_OBJECT_TYPE: SqlState = SqlState(*b"42809");
    pub const CANNOT_COERCE: SqlState = SqlState(*b"42846");
    pub const UNDEFINED_FUNCTION: SqlState = SqlState(*b"42883");
    pub const UNDEFINED_TABLE: SqlState = SqlState(*b"42P01");
    pub const UNDEFINED_PARAMETER: SqlState = SqlState(*b"42P02");
    pub const DUPLICATE_CURSOR: SqlState = SqlState(*b"42P03");
    pub const DUPLICATE_PREPARED_STATEMENT: SqlState = SqlState(*b"42P05");
    pub const DUPLICATE_TABLE: SqlState = SqlState(*b"42P07");
    pub const INVALID_COLUMN_REFERENCE: SqlState = SqlState(*b"42P10");
    pub const INVALID_CURSOR_DEFINITION: SqlState = SqlState(*b"42P11");
    pub const INVALID_TABLE_DEFINITION: SqlState = SqlState(*b"42P16");
    pub const INDETERMINATE_DATATYPE: SqlState = SqlState(*b"42P18");
    pub const AMBIGUOUS_FUNCTION: SqlState = SqlState(*b"42725");
    pub const CANT_CHANGE_RUNTIME_PARAM: SqlState = SqlState(*b"55P02");
    pub const LOCK_NOT_AVAILABLE: SqlState = SqlState(*b"55P03");
    pub const OBJECT_NOT_IN_PREREQUISITE_STATE: SqlState = SqlState(*b"55000");
    pub const OBJECT_IN_USE: SqlState = SqlState(*b"55006");
    pub const INSUFFICIENT_RESOURCES: SqlState = SqlState(*b"53000");
    pub const DISK_FULL: SqlState = SqlState(*b"53100");
    pub const OUT_OF_MEMORY: SqlState = SqlState(*b"53200");
    pub const TOO_MANY_CONNECTIONS: SqlState = SqlState(*b"53300");
    pub const CONFIGURATION_LIMIT_EXCEEDED: SqlState = SqlState(*b"53400");
    pub const PROGRAM_LIMIT_EXCEEDED: SqlState = SqlState(*b"54000");
    pub const STATEMENT_TOO_COMPLEX: SqlState = SqlState(*b"54001");
    pub const TOO_MANY_COLUMNS: SqlState = SqlState(*b"54011");
    pub const TOO_MANY_ARGUMENTS: SqlState = SqlState(*b"54023");
    pub const QUERY_CANCELED: SqlState = SqlState(*b"57014");
    pub const ADMIN_SHUTDOWN: SqlState = SqlState(*b"57P01");
    pub const CANNOT_CONNECT_NOW: SqlState = SqlState(*b"57P03");
    pub const IO_ERROR: SqlState = SqlState(*b"58030");
    pub const UNDEFINED_FILE: SqlState = SqlState(*b"58P01");
    pub const CONFIG_FILE_ERROR: SqlState = SqlState(*b"F0000");
    pub const LOCK_FILE_EXISTS: SqlState = SqlState(*b"F0001");
    pub const INTERNAL_ERROR: SqlState = SqlState(*b"XX000");
    pub const DATA_CORRUPTED: SqlState = SqlState(*b"XX001");
}
