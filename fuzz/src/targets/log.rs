//! The log: its records, and their effects on pages.

use std::io;
use std::sync::{Arc, LazyLock};

use millpond_buffer::{Lsn, PAGE_SIZE};
use millpond_engine::access::heap::header::TupleFlags;
use millpond_engine::access::heap::page::{Mark, NewTuple};
use millpond_engine::access::heap::prune::PrunePlan;
use millpond_engine::access::heap::record as heap;
use millpond_engine::access::{Tid, heap::check::check_page};
use millpond_engine::fuzzing;
use millpond_engine::page::{PageKind, item, kind};
use millpond_engine::rmgr::redo_of;
use millpond_engine::transam::{CommandId, Xid};
use millpond_engine::wal::end_record::EndRecord;
use millpond_engine::wal::reader::{LogReader, Step};
use millpond_engine::wal::record::{self, DecodedBlock, HEADER_BYTES, padded};
use millpond_engine::wal::storage_record::StorageRecord;
use millpond_engine::wal::{
    CONTROL_COPY_BYTES, Decoded, ImageMode, LogStore, PageEdit, Record, RmgrId, info,
};

use super::pages;
use crate::bytes::{Bytes, page_input};

const SEGMENT_BYTES: u64 = 16 << 10;
/// The existing segments.
const SEGMENTS: [u64; 2] = [1, 2];

/// A read-only log in memory.
struct Stored(Vec<u8>);

impl LogStore for Stored {
    fn segment_bytes(&self) -> u64 {
        SEGMENT_BYTES
    }
    fn segments(&self) -> io::Result<Vec<u64>> {
        Ok(SEGMENTS.to_vec())
    }
    fn read(&self, segment: u64, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let at = ((segment - SEGMENTS[0]) * SEGMENT_BYTES + offset) as usize;
        let stored = self.0.get(at..at + bytes.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(stored);
        Ok(())
    }
    fn create(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn recycle(&self, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn remove(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn write(&self, _: u64, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn sync(&self, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn read_control(&self, _: usize) -> io::Result<Option<[u8; CONTROL_COPY_BYTES]>> {
        Ok(None)
    }
    fn write_control(&self, _: usize, _: &[u8; CONTROL_COPY_BYTES]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A log of records, each after flags and its length. Flags: bit 0 leaves its checksum wrong, bit 1
/// leaves its length wrong, bit 2 leaves free bytes before it.
pub fn records(input: &[u8]) {
    let (mut input, start) = (Bytes(input), SEGMENTS[0] * SEGMENT_BYTES);
    let mut log = vec![0; (SEGMENT_BYTES as usize) * SEGMENTS.len()];
    let mut at = 0;
    while !input.0.is_empty() {
        let (flags, length) = (input.byte(), input.u16());
        let mut bytes = input.take(usize::from(length).min(4096)).to_vec();
        at += if flags & 4 != 0 { 64 } else { 0 };
        let position = Lsn(start + at as u64);
        let _ = record::decode(&bytes, position);
        if flags & 1 == 0 {
            put_right(&mut bytes, position, flags & 2 == 0);
        }
        bytes.resize(padded(bytes.len()), 0);
        let Some(room) = log.get_mut(at..at + bytes.len()) else { break };
        room.copy_from_slice(&bytes);
        at += bytes.len();
    }
    read(log, Lsn(start));
}

/// Gives a record its position and its checksum, and its real length if `length` is set.
fn put_right(bytes: &mut Vec<u8>, position: Lsn, length: bool) {
    bytes.resize(bytes.len().max(HEADER_BYTES), 0);
    if length {
        let length = bytes.len() as u32;
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
    }
    let lag = u32::from_le_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]);
    let summed = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize;
    let inner = crc_fast::crc32_iscsi(&bytes[20..summed.clamp(20, bytes.len())]);
    bytes[0..4].copy_from_slice(&inner.to_le_bytes());
    record::seal(bytes, position, Lsn(position.get().saturating_sub(lag.into())));
}

fn read(log: Vec<u8>, start: Lsn) {
    let Ok(mut reader) = LogReader::new(Arc::new(Stored(log)), start) else { return };
    let end = loop {
        let before = reader.position();
        match reader.next() {
            Ok(Step::Record(found)) => {
                assert!(found.start == before && found.end > before, "records follow each other");
                is_written_as_read(&found);
            }
            Ok(Step::End { at, .. }) => break at,
            Err(error) => panic!("a log in memory can be read: {error}"),
        }
    };
    if let Ok(Some(claim)) = reader.find_claim_beyond(end) {
        assert!(claim > end, "{claim} is behind {end}");
    }
}

fn is_written_as_read(found: &Decoded<'_>) {
    let mut record = Record::new(found.xid, found.rmgr, found.info, found.payload);
    let mut images = Vec::new();
    for block in &found.blocks {
        let mode = if block.will_init { ImageMode::Never } else { ImageMode::IfNeeded };
        record = record.block(block.page, mode, block.data);
        images.push(block.image.map(|image| {
            let mut page = Box::new([1; PAGE_SIZE]);
            image.restore(&mut page);
            page
        }));
    }
    let refs: Vec<Option<&[u8; PAGE_SIZE]>> = images.iter().map(Option::as_deref).collect();
    let mut bytes = Vec::new();
    let encoded = record::encode(&mut bytes, &record, found.start_no, &refs);
    assert!(encoded.is_ok(), "what was read can be written: {encoded:?}");
    record::seal(&mut bytes, found.start, found.flushed);
    let again = record::decode(&bytes, found.start);
    let Ok(again) = again else { panic!("what was written can be read: {again:?}") };
    let head = |record: &Decoded<'_>| {
        (record.xid, record.rmgr, record.info, record.start_no, record.blocks.len())
    };
    assert_eq!((head(&again), again.payload), (head(found), found.payload));
    for (again, (block, image)) in again.blocks.iter().zip(found.blocks.iter().zip(&images)) {
        is_same_block(again, block, image.as_deref());
    }
    payload(found.payload);
}

fn is_same_block(
    again: &DecodedBlock<'_>,
    block: &DecodedBlock<'_>,
    image: Option<&[u8; PAGE_SIZE]>,
) {
    assert_eq!(
        (again.page, again.data, again.will_init),
        (block.page, block.data, block.will_init)
    );
    let restored = again.image.map(|image| {
        let mut page = Box::new([2; PAGE_SIZE]);
        image.restore(&mut page);
        page
    });
    assert_eq!(restored.as_deref(), image, "an image restores the same page");
}

fn payload(payload: &[u8]) {
    if let Ok(end) = EndRecord::decode(payload) {
        assert_eq!(end.encode(), payload, "the end of a transaction is written as it was read");
    }
    let _ = StorageRecord::decode(payload);
}

pub fn record_seeds() -> Vec<Vec<u8>> {
    let rel = fuzzing::page_id();
    let mut page = [0; PAGE_SIZE];
    page[..100].fill(7);
    page[8000..].fill(9);
    let end = EndRecord { time_us: 77, files: vec![rel.relation()] }.encode();
    let storage = [7u32.to_le_bytes().as_slice(), &[0, 1], &9u32.to_le_bytes()].concat();
    let records = [
        (Record::new(Xid(5), RmgrId::Transaction, 0, &end), None),
        (Record::new(Xid(0), RmgrId::Storage, 1, &storage), None),
        (Record::new(Xid(0), RmgrId::Log, info::DURABLE, &[]), None),
        (
            Record::new(Xid(9), RmgrId::Heap, 1, b"rest").block(rel, ImageMode::IfNeeded, b"data"),
            Some(&page),
        ),
        (
            Record::new(Xid(9), RmgrId::BTree, 2, &[]).block(rel, ImageMode::Never, b"new").block(
                rel,
                ImageMode::IfNeeded,
                b"",
            ),
            None,
        ),
    ];
    let mut seeds = Vec::new();
    for (record, image) in &records {
        let mut bytes = Vec::new();
        let written = record::encode(&mut bytes, record, 3, &[*image]);
        if written.is_ok() {
            let mut seed = vec![0];
            seed.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
            seed.extend_from_slice(&bytes);
            seeds.push(seed);
        }
    }
    seeds.push(seeds.concat());
    seeds
}

static BASES: LazyLock<Vec<[u8; PAGE_SIZE]>> = LazyLock::new(|| {
    let mut bases = pages::heap_bases();
    bases.extend(fuzzing::btree_pages());
    bases
});

/// A page, a record's kind and block, and the record's data.
pub fn redo(input: &[u8]) {
    let mut input = Bytes(input);
    let mut page = input.page(&BASES);
    let rmgr =
        input.choose(&[RmgrId::Heap, RmgrId::BTree, RmgrId::Clog, RmgrId::Log, RmgrId::Storage]);
    let (info, block) = (input.byte(), usize::from(input.byte() % 4));
    let Ok(redo) = redo_of(rmgr) else { return };
    let (before, id) = (page.clone(), fuzzing::page_id());
    let sound = kind(&*page) == PageKind::Heap as u16 && item::check_bounds(&*page).is_ok();
    let done = redo.redo(info, block, input.0, &[], &mut PageEdit::new(id, &mut *page));
    match done {
        Ok(()) if rmgr == RmgrId::Heap => {
            assert!(item::check_bounds(&*page).is_ok(), "a page of a heap stays one");
            check_page(&page, id.block(), Xid::LIMIT, &mut |_| {});
            assert!(sound || info & heap::INIT_PAGE != 0, "what is no page of a heap is refused");
        }
        Ok(()) if rmgr == RmgrId::BTree => fuzzing::btree_page(&page, b"key", 5),
        _ => {}
    }
    let mut again = before;
    let repeated = redo.redo(info, block, input.0, &[], &mut PageEdit::new(id, &mut *again));
    assert_eq!(
        (repeated.is_ok(), &again),
        (done.is_ok(), &page),
        "redo follows from page and record"
    );
}

/// An input of [`redo`]: number of the page, resource manager, kind of record, block, data.
fn redo_input(base: usize, rmgr: u8, info: u8, block: u8, data: &[u8]) -> Vec<u8> {
    let mut out = page_input(base as u8, &[]);
    out.extend_from_slice(&[rmgr, info, block]);
    out.extend_from_slice(data);
    out
}

pub fn redo_seeds() -> Vec<Vec<u8>> {
    let heap_bases = pages::heap_bases().len();
    let mut seeds = Vec::new();
    let new = |offset| NewTuple {
        offset,
        xmin: Xid(9),
        cid: CommandId(1),
        flags: TupleFlags::NONE,
        natts: 2,
        payload: b"\x04\0abc",
    };
    let mark = Mark {
        offset: 1,
        xmax: Xid(9),
        cid: CommandId(2),
        flags: TupleFlags::UPDATED_AWAY.with(TupleFlags::HOT_UPDATED),
        next: Tid::new(fuzzing::page_id().block(), 4),
    };
    for base in 0..heap_bases {
        let mut push = |info, block, write: &dyn Fn(&mut Vec<u8>)| {
            let mut data = Vec::new();
            write(&mut data);
            seeds.push(redo_input(base, 0, info, block, &data));
        };
        push(heap::INSERT, 0, &|out| heap::encode_tuple(out, &new(4)));
        push(heap::INSERT | heap::INIT_PAGE, 0, &|out| heap::encode_tuple(out, &new(1)));
        let rows = [(1, TupleFlags::NONE, 1, &b"one"[..]), (2, TupleFlags::NONE, 1, b"two")];
        push(heap::INSERT_MANY | heap::INIT_PAGE, 0, &|out| {
            heap::encode_many(out, Xid(9), CommandId(0), true, &rows)
        });
        push(heap::DELETE, 0, &|out| heap::encode_mark(out, &mark));
        push(heap::UPDATE_MOVED, 1, &|out| heap::encode_mark(out, &mark));
        push(heap::UPDATE, 0, &|out| heap::encode_update(out, &mark, &new(4), b"\x04\0abx"));
        let plan = PrunePlan {
            redirects: [(1, 2)].into_iter().collect(),
            dead: [3].into_iter().collect(),
            freeze: [2].into_iter().collect(),
            all_visible: Some(true),
            ..PrunePlan::default()
        };
        push(heap::PRUNE, 0, &|out| plan.encode(out));
    }
    for base in 0..fuzzing::btree_pages().len() {
        let base = heap_bases + base;
        let key = b"\x01\0\0\x01\x10";
        seeds.push(redo_input(base, 1, 1, 0, &fuzzing::insert_data(1, key, 70)));
        seeds.push(redo_input(base, 1, 2, 1, &fuzzing::split_data(9, key)));
        seeds.push(redo_input(base, 1, 3, 2, &fuzzing::root_data(key)));
        seeds.push(redo_input(base, 1, 5, 0, &[0, 0, 2, 0]));
        seeds.push(redo_input(base, 1, 6, 0, &[0; 12]));
        seeds.push(redo_input(base, 1, 7, 0, &[9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3]));
        seeds.push(redo_input(base, 1, 7, 2, &[1; 16]));
        seeds.push(redo_input(base, 1, 8, 0, &[1, 0, 0, 0]));
        let header = [2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32];
        seeds.push(redo_input(base, 1, 4, 0, &[&header[..], &[0; 22]].concat()));
    }
    seeds.push(redo_input(0, 3, info::WRITE, 0, &[100, 0, 3, 0, 1, 2, 3]));
    seeds.push(redo_input(heap_bases + 7, 2, 0, 0, &[1; 130]));
    seeds
}
