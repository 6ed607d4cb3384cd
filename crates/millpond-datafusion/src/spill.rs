//! Where DataFusion's operators spill: temporary files of the engine, in the session's room
//! (`temp_file_limit`).

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use datafusion_common::{DataFusionError, Result as DfResult};
use datafusion_execution::spill_file::{SpillFile, SpillWriter, TempFileFactory};
use futures::Stream;
use millpond_engine::{TempFile, TempFiles, TempSpace};

use millpond_query::error::SqlError;

/// How much is read at a time.
const READ_BYTES: u64 = 128 << 10;
/// How much is written at a time, at least.
const WRITE_BYTES: usize = 64 << 10;

/// Makes the files that a session's operators spill to.
#[derive(Debug)]
pub struct SessionSpill {
    pub files: Arc<TempFiles>,
    pub space: Arc<TempSpace>,
}

impl TempFileFactory for SessionSpill {
    fn create_temp_file(&self, _description: &str) -> DfResult<Arc<dyn SpillFile>> {
        let made = self.files.make(&self.space);
        let file =
            made.map_err(|error| DataFusionError::External(Box::new(SqlError::from(error))))?;
        Ok(Arc::new(Spilled { file, length: Arc::default() }))
    }
}

/// A file with what an operator has spilled. Written by one writer, read once that has ended.
struct Spilled {
    file: Arc<dyn TempFile>,
    length: Arc<AtomicU64>,
}

impl SpillFile for Spilled {
    fn size(&self) -> Option<u64> {
        Some(self.length.load(Ordering::Acquire))
    }

    fn read_stream(&self) -> DfResult<Pin<Box<dyn Stream<Item = DfResult<Bytes>> + Send>>> {
        let (file, length) = (Arc::clone(&self.file), Arc::clone(&self.length));
        Ok(Box::pin(futures::stream::unfold(0u64, move |at| {
            let piece = read_piece(&*file, at, length.load(Ordering::Acquire));
            std::future::ready(piece.map(|piece| {
                let next = at + piece.as_ref().map_or(READ_BYTES, |piece| piece.len() as u64);
                (piece.map_err(DataFusionError::IoError), next)
            }))
        })))
    }

    fn open_writer(&self) -> DfResult<Box<dyn SpillWriter>> {
        let (file, length) = (Arc::clone(&self.file), Arc::clone(&self.length));
        Ok(Box::new(Writer { file, length, gathered: Vec::new() }))
    }
}

/// The piece at a position; `None` at the end.
fn read_piece(file: &dyn TempFile, at: u64, length: u64) -> Option<io::Result<Bytes>> {
    let left = length.checked_sub(at).filter(|left| *left > 0)?;
    let mut piece = vec![0; left.min(READ_BYTES) as usize];
    Some(file.read_exact_at(&mut piece, at).map(|()| piece.into()))
}

/// Gathers what is written, because it comes in pieces of some bytes.
struct Writer {
    file: Arc<dyn TempFile>,
    length: Arc<AtomicU64>,
    gathered: Vec<u8>,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.gathered, self.length.load(Ordering::Relaxed))?;
        self.length.fetch_add(self.gathered.len() as u64, Ordering::Release);
        self.gathered.clear();
        Ok(())
    }
}

impl SpillWriter for Writer {
    fn finish(&mut self) -> DfResult<()> {
        self.flush().map_err(DataFusionError::IoError)
    }
}
