//! The heap over a real pool: random histories against a model, redo, and several sessions at once.

mod concurrent;
mod free_space_map;
mod holders;
mod links;
mod model;
mod row_locks;
mod runs;
mod sync_scans;
mod versions;
mod world;
