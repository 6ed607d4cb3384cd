//! What the log needs of its storage: segments, and the control file with its two copies
//! ([`LogStore`]). Files implement it; so does a simulation that crashes on demand.

use std::io;

/// The size of one of the two copies in the control file.
pub const CONTROL_COPY_BYTES: usize = 512;

/// The segments of the log and the control file. Each call may fail. No failed sync is repeated.
///
/// A segment is a file of a fixed length. Its number is the log position of its first byte divided
/// by that length. It has no header: all its bytes are log.
pub trait LogStore: Send + Sync + 'static {
    /// Bytes in a segment: a power of two.
    fn segment_bytes(&self) -> u64;

    /// The numbers of all complete segments, ascending.
    fn segments(&self) -> io::Result<Vec<u64>>;

    /// Creates a segment full of zeros. When it returns, space is allocated, and the segment is
    /// durable and prepared. When it fails, no record may go there.
    fn create(&self, segment: u64) -> io::Result<()>;

    /// Prepares an existing segment: makes its name durable, and opens it for writes and syncs.
    fn prepare(&self, _segment: u64) -> io::Result<()> {
        Ok(())
    }

    /// Renumbers a segment that is no longer needed. Its old bytes stay. The new name is durable
    /// after [`LogStore::prepare`]. Until then a crash may bring the old name back.
    fn recycle(&self, from: u64, to: u64) -> io::Result<()>;

    /// Removes a segment. A crash may bring it back.
    fn remove(&self, segment: u64) -> io::Result<()>;

    /// Reads from a segment; `offset + bytes.len()` is within it.
    fn read(&self, segment: u64, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Writes to a segment; `offset + bytes.len()` is within it. Durable after [`LogStore::sync`].
    fn write(&self, segment: u64, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes everything written to the segment durable. The log writes no earlier segment after
    /// that.
    fn sync(&self, segment: u64) -> io::Result<()>;

    /// Reads one of the two copies in the control file; `None` if there is no control file.
    fn read_control(&self, copy: usize) -> io::Result<Option<[u8; CONTROL_COPY_BYTES]>>;

    /// Replaces one of the two copies, durably.
    fn write_control(&self, copy: usize, bytes: &[u8; CONTROL_COPY_BYTES]) -> io::Result<()>;
}
