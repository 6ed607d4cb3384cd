//! The targets.

mod control;
mod copy;
mod log;
mod pages;
mod sql;
mod trace;
mod types;
mod wire;

/// Something that reads bytes from outside.
pub struct Target {
    /// Its name, and that of its corpus.
    pub name: &'static str,
    /// What it reads.
    pub reads: &'static str,
    /// Reads an input, and panics if a promise is broken.
    pub run: fn(&[u8]),
    /// Inputs to begin with, beside the corpus.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// What occurs in valid inputs.
    pub tokens: &'static [&'static [u8]],
    /// The longest input that is made.
    pub longest: usize,
    /// Bytes of memory that an input may take beside what all may.
    pub memory: usize,
    /// Bytes of memory that a byte of input may take.
    pub memory_per_byte: usize,
}

impl Target {
    const fn new(
        name: &'static str,
        reads: &'static str,
        run: fn(&[u8]),
        seeds: fn() -> Vec<Vec<u8>>,
    ) -> Self {
        Self { name, reads, run, seeds, tokens: &[], longest: 512, memory: 0, memory_per_byte: 64 }
    }
}

/// A damaged page of an index may say that each of a thousand entries shares two pages' worth of bytes. Several copies are made of
/// what it says.
const DAMAGED_PAGE_BYTES: usize = 64 << 20;

/// All of them.
pub static TARGETS: &[Target] = &[
    Target::new("message", "messages of a client", wire::message, wire::message_seeds),
    Target {
        tokens: wire::STARTUP_TOKENS,
        ..Target::new("startup", "start-up packets", wire::startup, wire::startup_seeds)
    },
    Target {
        tokens: copy::TOKENS,
        ..Target::new("copy", "rows of COPY, text and csv", copy::rows, copy::seeds)
    },
    Target {
        tokens: types::TEXT_TOKENS,
        ..Target::new("text", "every type's text", types::text_input, types::text_seeds)
    },
    Target::new("binary", "every type's binary form", types::binary_input, types::binary_seeds),
    Target {
        // Six bytes are a number of 131072 digits.
        memory: 16 << 20,
        ..Target::new(
            "tuple",
            "stored rows, index keys and numbers",
            types::tuple,
            types::tuple_seeds,
        )
    },
    Target::new("log", "the log, record after record", log::records, log::record_seeds),
    Target {
        memory: DAMAGED_PAGE_BYTES,
        ..Target::new("redo", "what records do to pages", log::redo, log::redo_seeds)
    },
    Target::new("heap", "pages of tables", pages::heap, pages::heap_seeds),
    Target {
        memory: DAMAGED_PAGE_BYTES,
        ..Target::new("btree", "pages of indexes", pages::btree, pages::btree_seeds)
    },
    Target::new("map", "pages of the free space map, and checksums", pages::map, pages::map_seeds),
    Target::new("catalog", "rows of the catalog", control::catalog, control::catalog_seeds),
    Target::new("control", "the control file", control::control, control::control_seeds),
    Target::new(
        "trace",
        "page traces as the pool records them",
        trace::recorded,
        trace::recorded_seeds,
    ),
    Target {
        tokens: trace::TOKENS,
        ..Target::new(
            "replay",
            "page traces in all formats, and compressed",
            trace::replayed,
            trace::replayed_seeds,
        )
    },
    Target {
        tokens: sql::TOKENS,
        // A join, of a dozen bytes, is several structures of hundreds.
        memory_per_byte: 2048,
        ..Target::new("sql", "the text of statements", sql::statements, sql::seeds)
    },
];
