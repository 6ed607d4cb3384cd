//! Connections: where to listen and which clients to accept.

use super::I32;
use crate::settings::definition::Context::{Postmaster, Sighup, User};
use crate::settings::definition::Kind::{Bool, Enum, Int, Text};
use crate::settings::definition::Unit::{None as No, Permissions, Seconds};
use crate::settings::definition::{Definition, def, unused};

pub(super) const SETTINGS: &[Definition] = &[
    def(
        "listen_addresses",
        Text,
        Postmaster,
        "localhost",
        "Accepted for compatibility, no effect: see serve --listen.",
    ),
    def(
        "port",
        Int(1, 65535, No),
        Postmaster,
        "5433",
        "The TCP port to listen on, which also names the Unix socket.",
    ),
    def(
        "max_connections",
        Int(1, 60_000, No),
        Postmaster,
        "400",
        "How many sessions there may be at a time.",
    ),
    unused("superuser_reserved_connections", Int(0, 262_143, No), Postmaster, "3"),
    def(
        "unix_socket_directories",
        Text,
        Postmaster,
        "",
        "Accepted for compatibility, no effect: see serve --socket-dir.",
    ),
    def(
        "unix_socket_permissions",
        Int(0, 0o777, Permissions),
        Postmaster,
        "0777",
        "Who may connect to the Unix socket, as permission bits of a file in octal.",
    ),
    def(
        "shutdown_mode",
        Enum(&[("fast", "fast"), ("smart", "smart")]),
        Sighup,
        "fast",
        "What SIGTERM does: fast ends the sessions, smart waits for them to end.",
    ),
    def(
        "shutdown_timeout",
        Int(0, 3600, Seconds),
        Sighup,
        "5",
        "How long a fast shutdown may take before the server leaves without a checkpoint; 0 for no limit.",
    ),
    unused("tcp_keepalives_idle", Int(0, I32, Seconds), User, "0"),
    def(
        "password_encryption",
        Enum(&[("scram-sha-256", "scram-sha-256"), ("md5", "md5")]),
        User,
        "scram-sha-256",
        "There are no passwords yet: accepted for compatibility, no effect.",
    ),
    def("ssl", Bool, Sighup, "off", "There is no TLS yet: accepted for compatibility, no effect."),
];
