//! Vacuum in the background.

use super::I32;
use crate::settings::definition::Context::Sighup;
use crate::settings::definition::Kind::{Bool, Int, Real};
use crate::settings::definition::Unit::{None as No, Seconds};
use crate::settings::definition::{Definition, def};

pub(super) const SETTINGS: &[Definition] = &[
    def("autovacuum", Bool, Sighup, "on", "Whether tables are vacuumed in the background."),
    def(
        "autovacuum_naptime",
        Int(1, I32 / 1000, Seconds),
        Sighup,
        "60",
        "How often autovacuum looks for tables that need it.",
    ),
    def(
        "autovacuum_vacuum_threshold",
        Int(0, I32, No),
        Sighup,
        "50",
        "How many dead rows any table may have before it is vacuumed.",
    ),
    def(
        "autovacuum_vacuum_insert_threshold",
        Int(-1, I32, No),
        Sighup,
        "1000",
        "Accepted for compatibility, no effect: 1000 is used.",
    ),
    def(
        "autovacuum_analyze_threshold",
        Int(0, I32, No),
        Sighup,
        "50",
        "Accepted for compatibility, no effect: nothing is analyzed in the background.",
    ),
    def(
        "autovacuum_vacuum_scale_factor",
        Real(0.0, 100.0, No),
        Sighup,
        "0.2",
        "The share of a table's rows that may be dead, on top of the threshold, before it is vacuumed.",
    ),
    def(
        "autovacuum_vacuum_insert_scale_factor",
        Real(0.0, 100.0, No),
        Sighup,
        "0.2",
        "Accepted for compatibility, no effect: 0.2 is used.",
    ),
    def(
        "autovacuum_analyze_scale_factor",
        Real(0.0, 100.0, No),
        Sighup,
        "0.1",
        "Accepted for compatibility, no effect: nothing is analyzed in the background.",
    ),
];
