//! How queries are planned.

use super::I32;
use crate::settings::definition::Context::User;
use crate::settings::definition::Kind::{Bool, Enum, Int, Real};
use crate::settings::definition::Unit::{None as No, Pages};
use crate::settings::definition::{Definition, def, unused};

pub(super) const SETTINGS: &[Definition] = &[
    unused("enable_bitmapscan", Bool, User, "on"),
    unused("enable_hashagg", Bool, User, "on"),
    unused("enable_hashjoin", Bool, User, "on"),
    unused("enable_indexonlyscan", Bool, User, "on"),
    unused("enable_indexscan", Bool, User, "on"),
    unused("enable_material", Bool, User, "on"),
    unused("enable_mergejoin", Bool, User, "on"),
    unused("enable_nestloop", Bool, User, "on"),
    unused("enable_seqscan", Bool, User, "on"),
    unused("enable_sort", Bool, User, "on"),
    def(
        "seq_page_cost",
        Real(0.0, f64::MAX, No),
        User,
        "1",
        "Accepted for compatibility, no effect: plans are not chosen by cost.",
    ),
    def(
        "random_page_cost",
        Real(0.0, f64::MAX, No),
        User,
        "4",
        "Accepted for compatibility, no effect: plans are not chosen by cost.",
    ),
    def(
        "cpu_tuple_cost",
        Real(0.0, f64::MAX, No),
        User,
        "0.01",
        "Accepted for compatibility, no effect: plans are not chosen by cost.",
    ),
    def(
        "cpu_index_tuple_cost",
        Real(0.0, f64::MAX, No),
        User,
        "0.005",
        "Accepted for compatibility, no effect: plans are not chosen by cost.",
    ),
    def(
        "cpu_operator_cost",
        Real(0.0, f64::MAX, No),
        User,
        "0.0025",
        "Accepted for compatibility, no effect: plans are not chosen by cost.",
    ),
    def(
        "effective_cache_size",
        Int(1, I32, Pages),
        User,
        "524288",
        "Accepted for compatibility, no effect: plans are not chosen by cost.",
    ),
    unused("geqo", Bool, User, "on"),
    unused("default_statistics_target", Int(1, 10000, No), User, "100"),
    unused(
        "constraint_exclusion",
        Enum(&[
            ("partition", "partition"),
            ("on", "on"),
            ("off", "off"),
            ("true", "on"),
            ("false", "off"),
        ]),
        User,
        "partition",
    ),
    unused("from_collapse_limit", Int(1, I32, No), User, "8"),
    unused("join_collapse_limit", Int(1, I32, No), User, "8"),
    unused("jit", Bool, User, "off"),
    def(
        "plan_cache_mode",
        Enum(&[
            ("auto", "auto"),
            ("force_generic_plan", "force_generic_plan"),
            ("force_custom_plan", "force_custom_plan"),
        ]),
        User,
        "auto",
        "Accepted for compatibility, no effect: plans are made once and kept.",
    ),
];
