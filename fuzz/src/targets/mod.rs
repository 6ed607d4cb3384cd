//! The targets.

mod control;
mod copy;
mod log;
mod pages;
mod sql;
mod trace;
mod types;
mod wire;

/// A fuzz target: it reads bytes from outside.
pub struct Target {
    /// The name, also of its corpus.
    pub name: &'static str,
    /// What it reads.
    pub reads: &'static str,
    /// Reads an input, and panics if a decoder breaks a promise.
    pub run: fn(&[u8]),
    /// The first inputs, in addition to the corpus.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Byte strings that occur in valid inputs.
    pub tokens: &'static [&'static [u8]],
    /// The largest size of a made input.
    pub longest: usize,
    /// Bytes of memory that an input may take in addition to what all inputs may.
    pub memory: usize,
    /// Bytes of memory that each byte of input may take.
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

/// A damaged index page may claim that each of a thousand entries shares two pages' worth of bytes.
/// The code makes several copies of these bytes.
const DAMAGED_PAGE_BYTES: usize = 64 << 20;

/// All targets.
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
        // Six bytes can encode a number of 131072 digits.
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
        // A Zstandard block can ask for a megabyte of equal literals in four bytes. The decoder
        // holds them, and a ring buffer of the next power of two to which it copies them.
        memory: 4 << 20,
        ..Target::new(
            "replay",
            "page traces in all formats, and compressed",
            trace::replayed,
            trace::replayed_seeds,
        )
    },
    Target {
        tokens: sql::TOKENS,
        // A join of a dozen bytes becomes several structures of hundreds of bytes.
        memory_per_byte: 2048,
        ..Target::new("sql", "the text of statements", sql::statements, sql::seeds)
    },
];
