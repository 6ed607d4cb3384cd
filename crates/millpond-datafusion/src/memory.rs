//! The pool from which DataFusion's operators take memory: the session's, under `work_mem` and the
//! server's bound.
//!
//! | operator | bound of its own | when it is refused |
//! |---|---|---|
//! | sort, repartitioning | `work_mem` | it goes on in temporary files |
//! | hash aggregate, DISTINCT | `work_mem` times `hash_mem_multiplier` | in temporary files |
//! | merge of a sort's runs | three times `work_mem` | it merges fewer at a time |
//! | joins, top-k, aggregate without groups, windows | none | the statement ends with 53200 |
//!
//! An operator learns that it should spill by being refused. But some of its requests it needs in
//! order to spill, or to go on afterwards, and a refusal of those would end the statement. The pool
//! can't tell them apart, so it refuses with care. It grants what an operator asks that holds at
//! most half of its bound, for that has little to spill. It refuses once an operator that holds
//! more. Until that operator holds half again, it is taken to be spilling, and gets up to twice its
//! bound. A hash aggregate that merges what it has spilled has two reservations, and needs what it
//! asks for beside the merge's. The server's bound stands above all of this.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use datafusion_common::{DataFusionError, Result as DfResult};
use datafusion_execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use parking_lot::Mutex;

use millpond_query::error::SqlError;
use millpond_query::memory::{SessionMemory, out_of_memory};

/// How much of `work_mem` the merge of a sort's runs gets: it keeps keys beside rows.
const MERGE_SHARE: usize = 3;

/// A session's memory as DataFusion's operators see it.
#[derive(Debug)]
pub struct SessionPool {
    memory: Arc<SessionMemory>,
    /// Those that have been refused, and are spilling.
    spilling: Mutex<HashSet<usize>>,
    /// What each hash aggregate holds, in all of its reservations.
    hashed: Mutex<HashMap<usize, usize>>,
}

impl SessionPool {
    pub fn new(memory: Arc<SessionMemory>) -> Self {
        Self { memory, spilling: Mutex::default(), hashed: Mutex::default() }
    }

    /// How much an operator may have before it goes on in a file; `None` if it can't.
    fn bound(&self, consumer: &MemoryConsumer) -> Option<usize> {
        let name = consumer.name();
        if name.starts_with("ExternalSorterMerge") {
            return Some(self.memory.work().saturating_mul(MERGE_SHARE));
        }
        // It says that it can spill, but is ended by a refusal. Its groups come in order, so it
        // keeps few.
        if name.starts_with("OrderedFinalAggregate") {
            return None;
        }
        let bound = if is_hash(consumer) { self.memory.hash_work() } else { self.memory.work() };
        consumer.can_spill().then_some(bound)
    }

    /// Whether an operator of that bound should rather spill than grow.
    fn should_spill(&self, reservation: &MemoryReservation, wanted: usize, bound: usize) -> bool {
        let held = reservation.size();
        let after = held.saturating_add(wanted);
        if after <= bound || held <= bound / 2 || self.is_merging(reservation) {
            return false;
        }
        let is_told_now = self.spilling.lock().insert(reservation.consumer().id());
        is_told_now || after > bound.saturating_mul(2)
    }

    /// Whether a hash aggregate has another reservation, which is that of the merge of what it has
    /// spilled.
    fn is_merging(&self, reservation: &MemoryReservation) -> bool {
        let hashed = self.hashed.lock();
        hashed.get(&reservation.consumer().id()).is_some_and(|all| *all > reservation.size())
    }

    fn note_hashed(&self, consumer: &MemoryConsumer, change: impl FnOnce(&mut usize)) {
        if is_hash(consumer) {
            change(self.hashed.lock().entry(consumer.id()).or_default());
        }
    }
}

fn is_hash(consumer: &MemoryConsumer) -> bool {
    consumer.name().contains("HashAggregate")
}

impl fmt::Display for SessionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session({} bytes)", self.memory.used())
    }
}

impl MemoryPool for SessionPool {
    fn name(&self) -> &str {
        "session"
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.spilling.lock().remove(&consumer.id());
        self.hashed.lock().remove(&consumer.id());
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.memory.count(additional);
        self.note_hashed(reservation.consumer(), |held| *held += additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.memory.give_back(shrink);
        let consumer = reservation.consumer();
        self.note_hashed(consumer, |held| *held -= shrink);
        if self.bound(consumer).is_some_and(|bound| reservation.size() <= bound / 2) {
            self.spilling.lock().remove(&consumer.id());
        }
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> DfResult<()> {
        let consumer = reservation.consumer();
        if let Some(bound) = self.bound(consumer)
            && self.should_spill(reservation, additional, bound)
        {
            return Err(refused(&out_of_memory(additional, consumer.name())));
        }
        self.memory.take(additional, consumer.name()).map_err(|error| {
            // DataFusion 55 would go on in temporary files, and then returns unmatched rows of
            // outer joins once for each partition of the other side.
            if consumer.name().starts_with("NestedLoopJoinLoad") {
                return DataFusionError::External(Box::new(error));
            }
            refused(&error)
        })?;
        self.note_hashed(consumer, |held| *held += additional);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.memory.used()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Unknown
    }
}

/// The error by which operators know that they should spill.
fn refused(error: &SqlError) -> DataFusionError {
    DataFusionError::ResourcesExhausted(error.detail.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_query::memory::QueryMemory;

    const WORK: usize = 1000;

    fn pool(limit: usize) -> (Arc<QueryMemory>, Arc<dyn MemoryPool>) {
        let server = QueryMemory::new(limit);
        let session = SessionMemory::new(&server);
        session.set_work(WORK, 2.0);
        (server, Arc::new(SessionPool::new(session)))
    }

    fn sort(pool: &Arc<dyn MemoryPool>) -> MemoryReservation {
        MemoryConsumer::new("ExternalSorter[0]").with_can_spill(true).register(pool)
    }

    #[test]
    fn operator_that_can_spill_is_told_at_its_bound() {
        let (server, pool) = pool(1 << 20);
        let (one, other) = (sort(&pool), sort(&pool));
        one.try_grow(WORK).unwrap();
        assert!(matches!(one.try_grow(1), Err(DataFusionError::ResourcesExhausted(_))));
        // Each operator has a bound of its own, and a hash table more.
        other.try_grow(WORK).unwrap();
        let hash = MemoryConsumer::new("FinalHashAggregateStream[0]").with_can_spill(true);
        let hash = hash.register(&pool);
        hash.try_grow(WORK).unwrap();
        hash.try_grow(WORK).unwrap();
        hash.try_grow(1).unwrap_err();
        drop((one, other, hash));
        assert_eq!(server.used(), 0);
    }

    #[test]
    fn operator_that_spills_gets_what_it_needs_for_that() {
        let (_, pool) = pool(1 << 20);
        let sort = sort(&pool);
        // One batch is larger than the bound: there is nothing to spill.
        sort.try_grow(3 * WORK).unwrap();
        sort.free();
        sort.try_grow(WORK).unwrap();
        sort.try_grow(1).unwrap_err();
        sort.try_grow(WORK).unwrap();
        sort.try_grow(1).unwrap_err();
        sort.shrink(2 * WORK - WORK / 2);
        sort.try_grow(WORK / 2).unwrap();
        sort.try_grow(1).unwrap_err();
    }

    #[test]
    fn hash_aggregate_that_merges_needs_what_it_asks_for() {
        let (server, pool) = pool(1 << 20);
        let consumer = MemoryConsumer::new("FinalHashAggregateStream[0]").with_can_spill(true);
        let table = consumer.register(&pool);
        table.try_grow(2 * WORK).unwrap();
        table.try_grow(1).unwrap_err();
        table.free();
        let merge = table.new_empty();
        merge.try_grow(2 * WORK).unwrap();
        merge.try_grow(1).unwrap_err();
        table.try_grow(2 * WORK).unwrap();
        table.try_grow(WORK).unwrap();
        drop((table, merge));
        assert_eq!(server.used(), 0);
    }

    #[test]
    fn what_cannot_spill_has_the_bound_of_the_server() {
        let (_, pool) = pool(100 * WORK);
        let join = MemoryConsumer::new("HashJoinInput").register(&pool);
        join.try_grow(50 * WORK).unwrap();
        assert!(matches!(join.try_grow(50 * WORK), Err(DataFusionError::ResourcesExhausted(_))));
        // What would spill, but wrongly, does not.
        let load = MemoryConsumer::new("NestedLoopJoinLoad[0]").register(&pool);
        assert!(matches!(load.try_grow(50 * WORK), Err(DataFusionError::External(_))));
    }
}
