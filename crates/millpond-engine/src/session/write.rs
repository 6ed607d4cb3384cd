//! Changing rows: constraints, index entries, and conflicts with other transactions.

use millpond_buffer::{AccessStrategy, Wait};
use smallvec::SmallVec;

use super::Session;
use super::index::Entered;
use super::outcome::Changed;
use super::turn::RowPlace;
use crate::access::Tid;
use crate::access::heap::{
    self, ChangeOutcome, Changer, HeapRelation, InsertOptions, KeyChange, NewRow,
};
use crate::catalog::{IndexDef, TableDef};
use crate::error::{EngineError, EngineResult};
use crate::table::index_key::encode_key;
use crate::table::{RowBatch, RowBuf, RowOutcome, TableError};
use crate::transam::{CommandId, LockStrength};
use crate::types::Datum;

/// A batch of at least this many bytes counts as bulk load: its rows go through a ring of pages.
const LARGE_BATCH_BYTES: usize = 32 << 10;

type Row<'d> = SmallVec<[Datum<'d>; 16]>;

/// Fails if a NOT NULL column is NULL.
fn check_not_null(table: &TableDef, values: &[Datum<'_>]) -> EngineResult<()> {
    for (column, value) in table.columns.iter().zip(values) {
        if column.not_null && value.is_null() {
            return Err(TableError::NotNull {
                table: table.name.clone(),
                column: column.name.clone(),
            }
            .into());
        }
    }
    Ok(())
}

fn decode<'d>(table: &TableDef, bytes: &'d [u8]) -> EngineResult<Row<'d>> {
    let mut row = Row::new();
    table
        .layout
        .decode(bytes, |_, datum| row.push(datum))
        .map_err(|source| TableError::Damaged { table: table.name.clone(), source })?;
    Ok(row)
}

/// Whether a row of these bytes has another key in an index than a new row. Floats and numerics may
/// be equal in SQL and differ in their stored form, so this compares by SQL's equality.
fn key_changed(
    table: &TableDef,
    index: &IndexDef,
    old: &[u8],
    new: &[Datum<'_>],
) -> EngineResult<bool> {
    for column in &index.columns {
        let damaged = |source| TableError::Damaged { table: table.name.clone(), source };
        let old = table.layout.column(old, column.column).map_err(damaged)?;
        let is_same = match new.get(column.column) {
            Some(new) if old.is_null() || new.is_null() => old.is_null() == new.is_null(),
            Some(new) => old.sql_cmp(new) == Some(std::cmp::Ordering::Equal),
            None => false,
        };
        if !is_same {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How the keys change when a row replaces one of these bytes.
fn key_change(table: &TableDef, old: &[u8], new: &[Datum<'_>]) -> EngineResult<KeyChange> {
    let mut change = KeyChange::None;
    for index in &table.indexes {
        if key_changed(table, index, old, new)? {
            match index.unique {
                true => return Ok(KeyChange::Unique),
                false => change = KeyChange::Plain,
            }
        }
    }
    Ok(change)
}

impl Session {
    fn natts(table: &TableDef) -> u16 {
        table.columns.len() as u16
    }

    /// Inserts a row: checks NOT NULL, stores it, and inserts its index entries. If a transaction
    /// is inserting the same key, it waits for that one, then fails on a duplicate.
    pub fn insert(&self, table: &TableDef, values: &[Datum<'_>]) -> EngineResult<Tid> {
        let command = self.write_command("INSERT")?;
        let heap = self.heap(table)?;
        self.with_encoded(table, values, |bytes| {
            self.insert_encoded(table, heap, values, bytes, command)
        })
    }

    /// Checks NOT NULL, encodes the row into a reused buffer, and passes the bytes to `store`.
    fn with_encoded<T>(
        &self,
        table: &TableDef,
        values: &[Datum<'_>],
        store: impl FnOnce(&[u8]) -> EngineResult<T>,
    ) -> EngineResult<T> {
        check_not_null(table, values)?;
        let mut bytes = std::mem::take(&mut self.scratch.borrow_mut().row);
        bytes.clear();
        let result = table
            .layout
            .encode(values, &mut bytes)
            .map_err(|error| TableError::from(error).into())
            .and_then(|()| store(&bytes));
        self.scratch.borrow_mut().row = bytes;
        result
    }

    fn insert_encoded(
        &self,
        table: &TableDef,
        heap: &HeapRelation,
        values: &[Datum<'_>],
        bytes: &[u8],
        command: CommandId,
    ) -> EngineResult<Tid> {
        let prepared = self.prepare_entries(table, heap, values)?;
        let xid = self.ctx.assign_xid()?;
        let row = NewRow { payload: bytes, natts: Self::natts(table) };
        let tid = heap::insert(&self.ctx, heap, row, xid, command)?;
        self.transaction.note_write();
        let may_wait = self.ctx.wait() == Wait::Allowed;
        let entered = self.committed_to(|| {
            for index in &table.indexes {
                let entered = self.enter(table, heap, index, values, tid, may_wait)?;
                if entered != Entered::Done {
                    return Ok(entered);
                }
            }
            EngineResult::Ok(Entered::Done)
        })?;
        drop(prepared);
        match entered {
            Entered::Done => Ok(tid),
            Entered::Blocked(_) => {
                self.committed_to(|| self.take_back(heap, tid))?;
                Err(EngineError::WouldBlock)
            }
        }
    }

    /// Undoes an insertion whose key another transaction inserted at the same moment. For a session
    /// that must not wait: a later command deletes the row, and the statement then runs again under
    /// another one.
    fn take_back(&self, heap: &HeapRelation, tid: Tid) -> EngineResult<()> {
        self.transaction.next_command()?;
        let by = Changer { xid: self.ctx.assign_xid()?, cid: self.write_command("INSERT")? };
        match heap::delete(&self.ctx, heap, tid, by)? {
            ChangeOutcome::Done { .. } => {
                self.transaction.note_write();
                self.transaction.next_command()
            }
            _ => Err(EngineError::Internal { what: "a row just inserted can't be taken back" }),
        }
    }

    /// Checks NOT NULL, encodes the row and adds it to the batch.
    pub fn add_to_batch(
        &self,
        table: &TableDef,
        values: &[Datum<'_>],
        batch: &mut RowBatch,
    ) -> EngineResult<()> {
        check_not_null(table, values)?;
        let start = batch.bytes.len();
        if let Err(error) = table.layout.encode(values, &mut batch.bytes) {
            batch.bytes.truncate(start);
            return Err(TableError::from(error).into());
        }
        batch.ends.push(batch.bytes.len());
        Ok(())
    }

    /// Whether the running transaction has created or truncated the table. Then no other
    /// transaction sees its rows before the commit.
    pub fn is_new(&self, table: &TableDef) -> bool {
        self.transaction.created.contains(&table.storage)
    }

    /// Inserts all rows of the batch and empties it. Only where the session may wait.
    pub fn insert_batch(&self, table: &TableDef, batch: &mut RowBatch) -> EngineResult<u64> {
        let command = self.write_command("INSERT")?;
        if self.ctx.wait() == Wait::Never {
            return Err(EngineError::WouldBlock);
        }
        let heap = self.heap(table)?;
        let natts = Self::natts(table);
        if batch.ring.is_none() && batch.byte_len() >= LARGE_BATCH_BYTES {
            batch.ring = self.ctx.ring(AccessStrategy::BulkWrite);
        }
        let mut tids = std::mem::take(&mut batch.stored);
        tids.clear();
        let rows = Vec::from_iter(batch.rows().map(|payload| NewRow { payload, natts }));
        let xid = self.ctx.assign_xid()?;
        self.transaction.note_write();
        heap::insert_many(
            &self.ctx,
            heap,
            &rows,
            xid,
            command,
            InsertOptions {
                frozen: batch.frozen && self.is_new(table),
                only_new: false,
                ring: batch.ring.as_ref(),
            },
            &mut tids,
        )?;
        if !table.indexes.is_empty() {
            for (new, &tid) in rows.iter().zip(&tids) {
                self.check_cancel()?;
                let values = decode(table, new.payload)?;
                for index in &table.indexes {
                    self.enter(table, heap, index, &values, tid, true)?;
                }
            }
        }
        let count = rows.len() as u64;
        drop(rows);
        batch.clear();
        batch.stored = tids;
        Ok(count)
    }

    /// Replaces the version that `row` holds by one with these values. Waits for a transaction that
    /// is changing the row. If that one commits, the result is [`RowOutcome::Changed`]; in
    /// REPEATABLE READ it is the error `SerializationFailure`.
    pub fn update(
        &self,
        table: &TableDef,
        row: &mut RowBuf,
        values: &[Datum<'_>],
    ) -> EngineResult<RowOutcome> {
        let command = self.write_command("UPDATE")?;
        self.with_encoded(table, values, |bytes| {
            self.update_encoded(table, row, values, bytes, command)
        })
    }

    fn update_encoded(
        &self,
        table: &TableDef,
        row: &mut RowBuf,
        values: &[Datum<'_>],
        bytes: &[u8],
        command: CommandId,
    ) -> EngineResult<RowOutcome> {
        let heap = self.heap(table)?;
        let keys = key_change(table, row.bytes(), values)?;
        // A unique key may have to wait for other transactions after the row has changed.
        if keys == KeyChange::Unique && self.ctx.wait() == Wait::Never {
            return Err(EngineError::WouldBlock);
        }
        // Without room in its page the new version goes to another page, and every index gets an
        // entry.
        let stays = keys == KeyChange::None
            && (self.ctx.may_wait() || heap::has_room_beside(&self.ctx, heap, row.tid, bytes)?);
        let prepared = match stays {
            true => SmallVec::new(),
            false => self.prepare_moved_entries(table, values)?,
        };
        let new = NewRow { payload: bytes, natts: Self::natts(table) };
        let outcome = self.change(
            table,
            heap,
            row,
            keys.strength(),
            |tid, by| heap::update(&self.ctx, heap, tid, new, keys, by),
            command,
        )?;
        let outcome = match outcome {
            Changed::Done { tid, hot } => {
                if !hot {
                    self.committed_to(|| {
                        for index in &table.indexes {
                            self.enter(table, heap, index, values, tid, true)?;
                        }
                        EngineResult::Ok(())
                    })?;
                }
                RowOutcome::Done(tid)
            }
            Changed::Other(outcome) => outcome,
        };
        drop(prepared);
        Ok(outcome)
    }

    fn prepare_moved_entries(
        &self,
        table: &TableDef,
        values: &[Datum<'_>],
    ) -> EngineResult<SmallVec<[crate::access::btree::PreparedInsert<'_>; 4]>> {
        let mut prepared = SmallVec::new();
        if self.ctx.wait() == Wait::Never {
            let mut scratch = self.scratch.borrow_mut();
            for index in &table.indexes {
                encode_key(index, values, &mut scratch.key)?;
                let tree = self.tree(index)?;
                prepared.push(crate::access::btree::prepare_insert(
                    &self.ctx,
                    tree,
                    &scratch.key,
                    Tid::MAX,
                )?);
            }
        }
        Ok(prepared)
    }

    /// Deletes the version that `row` holds; otherwise like [`Self::update`].
    pub fn delete(&self, table: &TableDef, row: &mut RowBuf) -> EngineResult<RowOutcome> {
        let command = self.write_command("DELETE")?;
        let heap = self.heap(table)?;
        let change = |tid, by| heap::delete(&self.ctx, heap, tid, by);
        match self.change(table, heap, row, LockStrength::Update, change, command)? {
            Changed::Done { tid, .. } => Ok(RowOutcome::Done(tid)),
            Changed::Other(outcome) => Ok(outcome),
        }
    }

    /// Applies a change. Waits in the row's queue for a transaction that is changing the row.
    fn change(
        &self,
        table: &TableDef,
        heap: &HeapRelation,
        row: &mut RowBuf,
        strength: LockStrength,
        change: impl Fn(Tid, Changer) -> EngineResult<ChangeOutcome>,
        command: CommandId,
    ) -> EngineResult<Changed> {
        let Some(tid) = row.tid else { return Ok(Changed::Other(RowOutcome::Gone)) };
        let by = Changer { xid: self.ctx.assign_xid()?, cid: command };
        let place = RowPlace { table, heap, tid, root: row.root };
        let outcome = self.turn.attempt(&self.ctx, place, strength, || change(tid, by))?;
        self.judge(heap, row, outcome)
    }
}
