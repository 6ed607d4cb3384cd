//! Write-back: dirty pages reach the store, the log before them.

pub(crate) mod async_write;
pub(crate) mod checkpoint;
pub(crate) mod write;
