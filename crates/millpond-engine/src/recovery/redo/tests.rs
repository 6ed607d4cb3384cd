//! Redo of a page that is all zeros.

use millpond_buffer::{BlockNumber, LogFlush, PageRead};

use super::*;
use crate::testing::Fixture;
use crate::transam::Xid;
use crate::wal::storage::create_fork;
use crate::wal::{FileLogStore, ImageMode, Record, info};

struct NoParts;

impl RedoParts for NoParts {
    fn restore(&mut self, _: &[u8]) -> EngineResult<()> {
        Ok(())
    }

    fn redo(&mut self, _: &Decoded<'_>, _: &mut RedoFiles) -> EngineResult<()> {
        Ok(())
    }
}

/// Without an image, it is not the page's first record. An earlier change is lost (wal rule 18).
#[test]
fn a_page_of_zeros_is_reported_and_left_alone() {
    let fixture = Fixture::new();
    let (ctx, log) = (fixture.ctx(), &fixture.shared.log);
    let rel = RelationId::constant(20_000).main();
    create_fork(&ctx, ctx.pool(), Xid::INVALID, rel).unwrap();
    let handle = ctx.pool().relation(rel).unwrap();
    let block = BlockNumber(0);
    drop(ctx.buffers().extend(&handle, Wait::Allowed).unwrap());
    let record = Record::new(Xid::INVALID, RmgrId::Log, info::WRITE, b"");
    let record = record.block(rel.page(block), ImageMode::IfNeeded, &[100, 0, 1, 0, 3]);
    let inserted = log.insert(ctx.no(), &record).unwrap();
    log.flush(inserted.end).unwrap();
    assert!(log.may_be_zero(rel.page(block)));
    let files = FileLogStore::open(fixture.directory.path(), 1 << 20).unwrap();
    let store: Arc<dyn LogStore> = Arc::new(files);
    let (from, end) = (inserted.start, inserted.end);
    let redone = redo(&store, from, end, log, ctx.pool(), &mut NoParts).unwrap();
    assert_eq!(redone, Redone { records: 1, blocks: 0, skipped: 1 });
    let byte = ctx.buffers().read(&handle, block, Wait::Allowed, |page| page.u8(100));
    assert_eq!(byte.unwrap(), 0);
    assert!(!log.may_be_zero(rel.page(block)), "later readers must be told");
}
