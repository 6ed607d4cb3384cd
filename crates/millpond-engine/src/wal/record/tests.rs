use millpond_buffer::{BlockNumber, RelationId};
use proptest::prelude::*;

use super::*;

fn page_id(relation: u32, block: u32) -> PageId {
    RelationId::constant(relation).main().page(BlockNumber(block))
}

fn sealed(record: &Record<'_>, images: &[Option<&[u8; PAGE_SIZE]>], at: Lsn) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out, record, 7, images).unwrap();
    seal(&mut out, at, Lsn(at.get().saturating_sub(100)));
    out
}

#[test]
fn the_bytes_are_those_of_the_format() {
    let record = Record::new(Xid(0x1122), RmgrId::Heap, 3, b"tail").block(
        page_id(5, 9),
        ImageMode::IfNeeded,
        b"abc",
    );
    let bytes = sealed(&record, &[], Lsn(4096));
    assert_eq!(bytes.len(), 56);
    assert_eq!(bytes[4..8], 55u32.to_le_bytes());
    assert_eq!(bytes[8..16], 4096u64.to_le_bytes());
    assert_eq!(bytes[16..20], 100u32.to_le_bytes());
    assert_eq!(bytes[20..24], 7u32.to_le_bytes());
    assert_eq!(bytes[24..28], [3, 3, 1, 0]);
    assert_eq!(bytes[28..36], 0x1122u64.to_le_bytes());
    assert_eq!(bytes[36..44], (5u64 << 36 | 9).to_le_bytes());
    assert_eq!(bytes[44..48], [0, 0, 3, 0]);
    assert_eq!(&bytes[48..51], b"abc");
    assert_eq!(&bytes[51..55], b"tail");
    assert_eq!(bytes[55], 0);
}

#[test]
fn record_at_another_position_is_refused() {
    let bytes = sealed(&Record::new(Xid(1), RmgrId::Log, 0, b""), &[], Lsn(64));
    assert!(decode(&bytes, Lsn(64)).is_ok());
    assert_eq!(decode(&bytes, Lsn(72)).unwrap_err(), DecodeError::Position(64));
}

/// Writing another position into old bytes of a recycled segment does not make them a record.
#[test]
fn record_with_overwritten_position_is_refused() {
    let mut bytes = sealed(&Record::new(Xid(1), RmgrId::Log, 0, b""), &[], Lsn(64));
    bytes[8..16].copy_from_slice(&72u64.to_le_bytes());
    assert_eq!(decode(&bytes, Lsn(72)).unwrap_err(), DecodeError::Checksum);
}

#[test]
fn every_flipped_bit_is_found() {
    let page = [0x5a; PAGE_SIZE];
    let record = Record::new(Xid(77), RmgrId::BTree, 1, b"payload").block(
        page_id(1, 1),
        ImageMode::Always,
        b"data",
    );
    let good = sealed(&record, &[Some(&page)], Lsn(1 << 20));
    let length = u32::from_le_bytes(good[4..8].try_into().unwrap()) as usize;
    for bit in (0..400).chain((400..length * 8).step_by(61)) {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(&bad, Lsn(1 << 20)).is_err(), "bit {bit}");
    }
}

#[test]
fn lag_beyond_32_bits_reads_as_unknown() {
    let mut out = Vec::new();
    encode(&mut out, &Record::new(Xid(1), RmgrId::Log, 0, b""), 1, &[]).unwrap();
    seal(&mut out, Lsn(1 << 40), Lsn(8));
    assert_eq!(decode(&out, Lsn(1 << 40)).unwrap().flushed, Lsn::ZERO);
}

#[test]
fn too_long_is_refused() {
    let payload = vec![1; MAX_RECORD_BYTES];
    let mut out = Vec::new();
    let record = Record::new(Xid(1), RmgrId::Log, 0, &payload);
    assert!(matches!(encode(&mut out, &record, 1, &[]), Err(EncodeError::TooLong { .. })));
}

#[test]
fn a_noop_fills_any_reservation() {
    for bytes in (padded(HEADER_BYTES)..400).step_by(8) {
        let mut out = Vec::new();
        encode_noop(&mut out, bytes, 1);
        assert_eq!(out.len(), bytes);
        seal(&mut out, Lsn(800), Lsn(0));
        assert_eq!(decode(&out, Lsn(800)).unwrap().end, Lsn(800 + bytes as u64));
    }
}

prop_compose! {
    fn page()(fill: u8, start in 0usize..PAGE_SIZE, len in 0usize..PAGE_SIZE) -> Box<[u8; PAGE_SIZE]> {
        let mut page = Box::new([fill; PAGE_SIZE]);
        let end = (start + len).min(PAGE_SIZE);
        page[start..end].fill(0);
        page
    }
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(
        xid: u64, info: u8, rmgr in 0u8..7, at in 0u64..1 << 50,
        payload in prop::collection::vec(any::<u8>(), 0..200),
        blocks in prop::collection::vec(
            (any::<u32>(), prop::collection::vec(any::<u8>(), 0..80), prop::option::of(page())), 0..5),
    ) {
        let at = Lsn(at & !7);
        let mut record = Record::new(Xid(xid), RmgrId::from_u8(rmgr).unwrap(), info, &payload);
        for (block, data, image) in &blocks {
            let mode = if image.is_some() { ImageMode::Always } else { ImageMode::Never };
            record = record.block(page_id(3, *block), mode, data);
        }
        let images: Vec<_> = blocks.iter().map(|(_, _, image)| image.as_deref()).collect();
        let bytes = sealed(&record, &images, at);
        prop_assert!(bytes.len() <= record.max_bytes());
        let decoded = decode(&bytes, at).unwrap();
        prop_assert_eq!(decoded.end.get(), at.get() + bytes.len() as u64);
        prop_assert_eq!(decoded.flushed, Lsn(at.get().saturating_sub(100)));
        prop_assert_eq!((decoded.xid, decoded.info, decoded.start_no), (Xid(xid), info, 7));
        prop_assert_eq!(decoded.payload, &payload[..]);
        for (found, (block, data, image)) in decoded.blocks.iter().zip(&blocks) {
            prop_assert_eq!(found.page, page_id(3, *block));
            prop_assert_eq!(found.data, &data[..]);
            prop_assert_eq!(found.will_init, image.is_none());
            if let Some(image) = image {
                let mut restored = [1; PAGE_SIZE];
                found.image.unwrap().restore(&mut restored);
                prop_assert!(restored == **image);
            }
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), at: u64) {
        let _ = decode(&bytes, Lsn(at));
    }

    /// Bytes with a valid checksum and malformed content: only a bug or an attacker makes them.
    #[test]
    fn malformed_record_with_valid_checksum_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 36..9000), at in 0u64..1 << 40) {
        let at = Lsn(at & !7);
        let length = bytes.len();
        bytes.resize(padded(length), 0);
        bytes[4..8].copy_from_slice(&(length as u32).to_le_bytes());
        let inner = crc_fast::crc32_iscsi(&bytes[20..length]);
        bytes[0..4].copy_from_slice(&inner.to_le_bytes());
        bytes[24] %= 8;
        seal(&mut bytes, at, Lsn(0));
        let _ = decode(&bytes, at);
    }
}
