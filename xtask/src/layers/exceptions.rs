//! Circles of modules that are there for a reason. The check fails if one is no circle any more.

use std::collections::BTreeSet;

/// A circle that is there for a reason.
pub struct Exception {
    pub krate: &'static str,
    /// The modules of the circle, no more and no fewer.
    pub modules: &'static [&'static str],
    pub reason: &'static str,
}

impl Exception {
    pub fn set(&self) -> BTreeSet<String> {
        self.modules.iter().map(|&module| module.to_owned()).collect()
    }
}

pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        krate: "millpond-types",
        modules: &["array", "key", "other", "record"],
        reason: "the key of an array or a record is made of the keys of what is in it, of any type",
    },
    Exception {
        krate: "millpond-types",
        modules: &[
            "format::array",
            "format::binary",
            "format::other",
            "format::record",
            "format::text",
        ],
        reason: "the text of an array or a record is made of the texts of what is in it, of any type",
    },
];
