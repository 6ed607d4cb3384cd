use millpond_buffer::BlockNumber;
use proptest::prelude::*;

use super::*;

const REL: RelFork = RelationId::constant(20_000).main();

/// A fork of the engine's own, whose LSNs are kept.
const OWN: RelFork = RelationId::constant(2).main();

fn page(block: u32) -> PageId {
    REL.page(BlockNumber(block))
}

#[test]
fn skipped_block_may_be_zeros_until_it_is_written() {
    let forks = Forks::default();
    assert!(forks.may_be_zero(page(0)), "nothing is known of it");
    forks.create(REL, Xid::INVALID);
    assert_eq!(forks.least_blocks(REL), Some(0));
    forks.write(page(2), Lsn(9));
    let zeros = |forks: &Forks| (0..5).filter(|&b| forks.may_be_zero(page(b))).collect::<Vec<_>>();
    assert_eq!((forks.least_blocks(REL), zeros(&forks)), (Some(3), vec![0, 1, 3, 4]));
    forks.write(page(0), Lsn(9));
    assert_eq!(zeros(&forks), [1, 3, 4]);
    forks.cut(REL, 2);
    assert_eq!((forks.least_blocks(REL), zeros(&forks)), (Some(2), vec![1, 2, 3, 4]));
    forks.cut(REL, 1);
    forks.write(page(1), Lsn(9));
    assert_eq!((forks.least_blocks(REL), zeros(&forks)), (Some(2), vec![2, 3, 4]));
}

#[test]
fn dropped_relation_is_remembered_until_its_files_are_removed() {
    let forks = Forks::default();
    forks.create(REL, Xid(5));
    forks.write(page(0), Lsn(9));
    forks.set_dropped(REL.relation);
    assert_eq!(forks.least_blocks(REL), None);
    assert!(forks.get(REL).unwrap().dropped);
    forks.remove(REL.relation);
    assert_eq!(forks.get(REL), None);
}

#[test]
fn committed_creator_of_a_fork_is_cleared() {
    let forks = Forks::default();
    let other = RelationId::constant(20_001).main();
    forks.create(REL, Xid(5));
    forks.create(other, Xid(6));
    forks.settle_makers(|xid| Ok::<_, ()>(xid == Xid(5))).unwrap();
    assert_eq!(forks.get(REL).unwrap().made_by, Xid::INVALID);
    assert_eq!(forks.get(other).unwrap().made_by, Xid(6));
}

/// The content of records, in the order of the log.
#[derive(Clone, Copy, Debug)]
enum Said {
    Written(u32),
    Cut(u32),
    Dropped,
}

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        8 => (0u32..12).prop_map(Said::Written),
        2 => (0u32..12).prop_map(Said::Cut),
        1 => Just(Said::Dropped),
    ]
}

fn apply(forks: &Forks, rel: RelFork, (at, said): (usize, Said)) {
    match said {
        Said::Written(block) => forks.write(rel.page(BlockNumber(block)), Lsn(at as u64 + 1)),
        Said::Cut(blocks) => forks.cut(rel, blocks),
        Said::Dropped => forks.set_dropped(rel.relation),
    }
}

#[test]
fn only_the_engines_own_forks_have_lsns() {
    let forks = Forks::default();
    for rel in [REL, OWN] {
        forks.create(rel, Xid::INVALID);
        forks.write(rel.page(BlockNumber(2)), Lsn(70));
        forks.write(rel.page(BlockNumber(2)), Lsn(80));
    }
    let lsns = |rel| (0..4).map(|block| forks.get(rel).unwrap().lsn(block)).collect::<Vec<_>>();
    assert_eq!(lsns(REL), [None; 4]);
    assert_eq!(lsns(OWN), [None, None, Some(Lsn(80)), None]);
    forks.cut(OWN, 2);
    assert_eq!(lsns(OWN), [None; 4]);
}

fn known_fork() -> impl Strategy<Value = KnownFork> {
    let unwritten = prop::collection::btree_set(0u32..3000, 0..1200);
    let flags = (any::<bool>(), any::<bool>());
    (unwritten, 0u32..50, flags, 0u64..3).prop_map(|(unwritten, more, (dropped, is_own), maker)| {
        let blocks = unwritten.last().map_or(0, |last| last + 1) + more;
        let lsns = (0..blocks).filter(|_| is_own).map(|block| Lsn(u64::from(block) * 7)).collect();
        KnownFork { blocks, unwritten, made_by: Xid(maker), dropped, lsns }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn lists_are_read_as_written(forks in prop::collection::vec(known_fork(), 0..40)) {
        let forks: ForkList = (0..).map(|n| RelationId::constant(n).fork(Fork::Fsm)).zip(forks).collect();
        let (redo, mut entries) = (Lsn(77), 0);
        let payloads = encoding::encode(redo, &forks, &mut entries);
        prop_assert!(payloads.iter().all(|payload| payload.len() <= 8192));
        let (mut read, mut found) = (ForkList::new(), 0);
        for payload in &payloads {
            prop_assert_eq!(decode_list(payload, Lsn(78), &mut ForkList::new()), Some(0));
            found += decode_list(payload, redo, &mut read).unwrap();
        }
        prop_assert_eq!((read, found), (forks, entries));
    }

    /// Recovery begins with the table that a checkpoint has copied at some time behind its redo
    /// point. The copy may have some, and may lack others, of the blocks first written to in
    /// between. In the end the table must match the whole log.
    #[test]
    fn recovered_fork_table_matches_the_whole_log(
        log in prop::collection::vec((said(), any::<bool>()), 0..40),
        (redo, copied) in (0usize..41, 0usize..41),
        rel in prop_oneof![Just(REL), Just(OWN)],
    ) {
        let dropped = log.iter().position(|(said, _)| matches!(said, Said::Dropped));
        let log = &log[..dropped.map_or(log.len(), |at| at + 1)];
        let redo = redo.min(log.len());
        let copied = copied.clamp(redo, log.len());
        let (whole, copy, recovered) = (Forks::default(), Forks::default(), Forks::default());
        for forks in [&whole, &copy] {
            forks.create(rel, Xid(9));
        }
        for (at, (said, is_late)) in log.iter().enumerate() {
            apply(&whole, rel, (at, *said));
            let is_missed = at >= redo && *is_late && matches!(said, Said::Written(_));
            if at < copied && !is_missed {
                apply(&copy, rel, (at, *said));
            }
        }
        recovered.restore(&copy.all());
        for (at, (said, _)) in log.iter().enumerate().skip(redo) {
            apply(&recovered, rel, (at, *said));
        }
        let (whole, recovered) = (whole.get(rel).unwrap(), recovered.get(rel).unwrap());
        prop_assert_eq!(whole.dropped, recovered.dropped);
        if !whole.dropped {
            prop_assert_eq!(whole, recovered);
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let redo = bytes.first_chunk().map_or(Lsn(0), |first| Lsn(u64::from_le_bytes(*first)));
        let _ = decode_list(&bytes, redo, &mut ForkList::new());
        let _ = CheckpointEnd::decode(&bytes);
    }
}
