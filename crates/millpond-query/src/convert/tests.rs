//! Which SQLSTATE a client gets for an error of the operating system.

use std::io;

use millpond_engine::wal::WalError;

use super::*;

/// Error numbers of Linux.
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const EIO: i32 = 5;
const ENOMEM: i32 = 12;
const ENOSPC: i32 = 28;
const EDQUOT: i32 = 122;

fn of_store(errno: i32) -> SqlError {
    let source = io::Error::from_raw_os_error(errno);
    EngineError::Buffer(StoreError::io("open base/16384", source).into()).into()
}

fn of_log(errno: i32) -> SqlError {
    let source = io::Error::from_raw_os_error(errno);
    EngineError::Wal(WalError::io("open a segment", source)).into()
}

fn of_temporary_file(errno: i32) -> SqlError {
    let source = io::Error::from_raw_os_error(errno);
    EngineError::TemporaryFile { what: "create", source }.into()
}

#[test]
fn errors_of_the_system_have_the_sqlstates_of_postgresql() {
    let expected = [
        (EIO, "58030"),
        (ENOMEM, "53200"),
        (ENOSPC, "53100"),
        (EDQUOT, "53100"),
        (EMFILE, "53000"),
    ];
    for (errno, state) in expected {
        for error in [of_store(errno), of_log(errno), of_temporary_file(errno)] {
            assert_eq!(error.sqlstate.as_str(), state, "{errno}: {error}");
        }
    }
}

#[test]
fn a_process_out_of_descriptors_says_so() {
    for errno in [EMFILE, ENFILE] {
        for error in [of_store(errno), of_log(errno), of_temporary_file(errno)] {
            assert_eq!(error.sqlstate.as_str(), "53000", "{error}");
            assert!(error.message.starts_with("out of file descriptors: "), "{error}");
            assert!(error.message.contains("os error"), "{error}");
            assert!(error.hint.is_some());
        }
    }
}
