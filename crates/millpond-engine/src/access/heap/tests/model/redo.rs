//! Redo makes the same pages.

use super::*;

impl Model {
    /// Replays the whole log on empty pages: the result must equal the current pages (heap rule 1).
    pub(super) fn check_redo(&self) {
        let mut pages: BTreeMap<u32, Box<[u8; PAGE_SIZE]>> = BTreeMap::new();
        self.world.replay(|record| {
            if record.rmgr == RmgrId::Storage
                && let Ok(StorageRecord::Truncate(_, blocks)) =
                    StorageRecord::decode(record.payload)
            {
                pages.retain(|&block, _| block < blocks);
            }
            if record.rmgr != RmgrId::Heap {
                return;
            }
            for (index, block) in record.blocks.iter().enumerate() {
                let number = block.page.block().0;
                let bytes = pages.entry(number).or_insert_with(|| Box::new([0; PAGE_SIZE]));
                if let Some(image) = &block.image {
                    let mut before = [0; PAGE_SIZE];
                    image.restore(&mut before);
                    assert_same(bytes, &before);
                    **bytes = before;
                }
                if block.will_init {
                    bytes.fill(0xEE);
                }
                apply(&mut **bytes, record.info, index, block.data).unwrap();
            }
        });
        for (block, bytes) in pages {
            let pinned =
                self.ctx.buffers().pin(&self.world.heap.main, BlockNumber(block), self.ctx.wait());
            let latched = pinned.unwrap().into_shared().unwrap();
            assert_same(&bytes, latched.bytes());
        }
    }
}

/// Compares two pages apart from LSN, checksum and the hole.
fn assert_same(a: &[u8; PAGE_SIZE], b: &[u8; PAGE_SIZE]) {
    use crate::page::item;
    let lower = item::LINES + item::LINE_LEN * item::line_count(a) as usize;
    assert_eq!(a[12..lower], b[12..lower]);
    for offset in 1..=item::line_count(a) {
        if let Some(range) = item::line(a, offset).item() {
            assert_eq!(a[range.clone()], b[range]);
        }
    }
}
