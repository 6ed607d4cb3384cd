//! Facts that cannot be set.

use crate::settings::definition::Context::{Internal, Postmaster};
use crate::settings::definition::Kind::{Bool, Int, Text};
use crate::settings::definition::Unit::{Bytes, None as No, Pages};
use crate::settings::definition::{Definition, def, reported};

pub(super) const SETTINGS: &[Definition] = &[
    def("block_size", Int(8192, 8192, No), Internal, "8192", "Bytes of a page."),
    def(
        "segment_size",
        Int(131_072, 131_072, Pages),
        Internal,
        "131072",
        "Pages in one file of a relation.",
    ),
    def(
        "wal_segment_size",
        Int(1_048_576, 1_073_741_824, Bytes),
        Internal,
        "16777216",
        "Bytes of a log file.",
    ),
    def("data_checksums", Bool, Internal, "on", "Every page carries a checksum, always."),
    def(
        "data_directory",
        Text,
        Postmaster,
        "",
        "Accepted for compatibility, no effect: the directory is given when the database is opened.",
    ),
    reported(def(
        "integer_datetimes",
        Bool,
        Internal,
        "on",
        "Time stamps are whole microseconds, always.",
    )),
    reported(def("in_hot_standby", Bool, Internal, "off", "Off: there are no standbys.")),
    def("lc_collate", Text, Internal, "C", "Text is ordered bytewise."),
    def("lc_ctype", Text, Internal, "C", "Letters are classified as in C."),
    def("max_identifier_length", Int(63, 63, No), Internal, "63", "Bytes that a name may have."),
    def("max_index_keys", Int(32, 32, No), Internal, "32", "Columns that an index may have."),
    reported(def("server_encoding", Text, Internal, "UTF8", "How text is stored: UTF8.")),
    reported(def(
        "server_version",
        Text,
        Internal,
        crate::settings::SERVER_VERSION,
        "The PostgreSQL whose behaviour to expect, and what this is.",
    )),
    def(
        "server_version_num",
        Int(crate::settings::SERVER_VERSION_NUM, crate::settings::SERVER_VERSION_NUM, No),
        Internal,
        crate::settings::SERVER_VERSION_NUM_TEXT,
        "The same as a number to compare with.",
    ),
];
