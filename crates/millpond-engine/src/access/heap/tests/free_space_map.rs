//! The free space map is not logged, so a crash may tear its pages (wal rule 14).

use millpond_buffer::{BlockNumber, Fork, PAGE_SIZE, PageStore, RelationId, Wait};

use crate::access::heap::{HeapRelation, fsm};
use crate::testing::Fixture;

const RELATION: RelationId = RelationId::constant(100);

#[test]
fn a_torn_page_of_the_map_is_begun_anew() {
    let fixture = Fixture::new();
    let ctx = fixture.ctx();
    HeapRelation::create(ctx.pool(), RELATION).unwrap();
    let (map, first) = (RELATION.fork(Fork::Fsm), BlockNumber(0));
    fixture.store.extend(map, first, 1).unwrap();
    fixture.store.write(map, first, &[&[0xa5; PAGE_SIZE]]).unwrap();
    let heap = HeapRelation::open(ctx.pool(), RELATION, 100, 8).unwrap();
    drop(ctx.buffers().extend(&heap.main, Wait::Allowed).unwrap());
    assert_eq!(fsm::search(&ctx, &heap, 100, first), None);
    fsm::record(&ctx, &heap, first, 5000);
    assert_eq!(fsm::search(&ctx, &heap, 100, first), Some(first));
}
