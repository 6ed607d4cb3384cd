//! DDL: creating, dropping and truncating tables and indexes, and building indexes again. All of it
//! is transactional.
//!
//! Each operation takes its locks first (names before relations) and looks at the catalog again
//! under them. Then it creates files, changes the catalog's rows and updates the session's view. A
//! rollback removes the files that the transaction created; a commit removes those of dropped
//! relations. The record that ends the transaction names them, so that recovery removes them too.

mod names;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use millpond_buffer::{Fork, RelationId};

use crate::access::btree;
use crate::catalog::change::Change;
use crate::catalog::rows::{CatalogRow, IndexFlags, row_of_index, rows_of};
use crate::catalog::{IndexColumn, IndexDef, NewIndex, NewTable, Oid, TableDef, heap};
use crate::error::{EngineError, EngineResult};
use crate::lmgr::{LockMode, LockTag};
use crate::session::Session;
use crate::table::{TableError, build};
use crate::types::tuple::MAX_COLUMNS;
use crate::wal::storage::create_forks;

/// PostgreSQL's limit for index columns.
const MAX_KEY_COLUMNS: usize = 32;

fn invalid(what: impl Into<String>) -> EngineError {
    TableError::InvalidDefinition(what.into()).into()
}

/// The definitions of tables and indexes, to be changed by the running transaction. From
/// [`Session::ddl`].
pub struct Ddl<'s> {
    session: &'s mut Session,
}

impl Session {
    /// For statements that change definitions.
    pub fn ddl(&mut self) -> Ddl<'_> {
        Ddl { session: self }
    }
}

impl Ddl<'_> {
    fn start_ddl(&self, what: &'static str) -> EngineResult<()> {
        self.session.write_command(what)?;
        if !self.session.ctx.may_wait() {
            return Err(EngineError::WouldBlock);
        }
        Ok(())
    }

    /// To be called after the catalog's rows have changed: later commands see the change.
    fn end_ddl(&self, change: Change) -> EngineResult<()> {
        self.session.change_catalog(change);
        self.session.transaction.note_write();
        self.session.transaction.next_command()
    }

    fn create_heap_file(&mut self) -> EngineResult<RelationId> {
        self.create_file(&[Fork::Main, Fork::Fsm])
    }

    /// Creates a file for an index, with an empty tree unless it is about to be `built`.
    fn create_tree_file(&mut self, built: bool) -> EngineResult<RelationId> {
        let storage = self.create_file(&[Fork::Main])?;
        if !built {
            let tree = self.session.ctx.pool().relation(storage.main())?;
            btree::create(&self.session.ctx, &tree)?;
        }
        Ok(storage)
    }

    fn create_file(&mut self, forks: &[Fork]) -> EngineResult<RelationId> {
        let xid = self.session.ctx.assign_xid()?;
        let storage = self.session.engine.published().new_storage()?;
        // Before the file is created, so that a rollback removes it.
        self.session.transaction.created.push(storage);
        let forks: Vec<_> = forks.iter().map(|&fork| storage.fork(fork)).collect();
        create_forks(&self.session.ctx, self.session.ctx.pool(), xid, &forks)?;
        Ok(storage)
    }

    fn make_index(
        &mut self,
        table: &TableDef,
        new: &NewIndex,
        taken: &HashSet<String>,
        built: bool,
    ) -> EngineResult<IndexDef> {
        check_index_columns(table, &new.columns)?;
        let name = match &new.name {
            Some(name) => {
                self.claim_name(name)?;
                if taken.contains(name) {
                    return Err(TableError::DuplicateRelation(name.clone()).into());
                }
                name.clone()
            }
            None => self.make_name(table, new, taken)?,
        };
        let storage = self.create_tree_file(built)?;
        let oid = self.session.engine.published().new_oid()?;
        let flags = IndexFlags {
            unique: new.unique || new.primary,
            primary: new.primary,
            constraint: new.constraint || new.primary,
        };
        IndexDef::new(table, oid, name, storage, new.columns.clone(), flags, new.fillfactor)
            .ok_or_else(|| invalid("an index on a column that its table does not have"))
    }

    /// Creates a table with its primary key and unique indexes.
    pub fn create_table(&mut self, new: NewTable) -> EngineResult<Arc<TableDef>> {
        self.start_ddl("CREATE TABLE")?;
        check_columns(&new)?;
        self.claim_name(&new.name)?;
        let mut columns = new.columns;
        for index in new.indexes.iter().filter(|index| index.primary) {
            for column in &index.columns {
                if let Some(column) = columns.get_mut(column.column) {
                    column.not_null = true;
                }
            }
        }
        let oid = self.session.engine.published().new_oid()?;
        let storage = self.create_heap_file()?;
        self.session.ctx.lock(LockTag::Relation(oid), LockMode::AccessExclusive)?;
        let mut taken = HashSet::from([new.name.clone()]);
        let mut table = TableDef::new(oid, new.name, storage, columns, new.fillfactor);
        // Explicit names come before generated ones.
        let (named, unnamed): (Vec<_>, Vec<_>) =
            new.indexes.iter().partition(|index| index.name.is_some());
        for index in named.into_iter().chain(unnamed) {
            let index = self.make_index(&table, index, &taken, false)?;
            taken.insert(index.name.clone());
            table.add_index(Arc::new(index));
        }
        let command = self.session.write_command("CREATE TABLE")?;
        heap::insert(
            &self.session.ctx,
            self.session.engine.catalog_heap(),
            &rows_of(&table),
            command,
        )?;
        self.session.transaction.note_write();
        let table = Arc::new(table);
        self.end_ddl(Change::PutTable(Arc::clone(&table)))?;
        Ok(table)
    }

    /// Locks a table and returns its definition under the lock.
    fn locked_table(&self, oid: Oid, mode: LockMode) -> EngineResult<Arc<TableDef>> {
        let before = self.session.catalog().table(oid).cloned();
        let tag = LockTag::Relation(oid);
        match self.session.ctx.lock_nowait(tag, mode) {
            Ok(_) => {}
            Err(EngineError::LockNotAvailable { .. }) => {
                self.session.engine.autovacuum().cancel(oid);
                self.session.ctx.lock(tag, mode)?;
            }
            Err(error) => return Err(error),
        }
        self.session.catalog().table(oid).cloned().ok_or_else(|| {
            let name = before.map_or_else(|| oid.to_string(), |table| table.name.clone());
            TableError::UndefinedRelation(name).into()
        })
    }

    fn delete_rows(
        &self,
        table: Oid,
        which: impl Fn(&CatalogRow) -> bool,
    ) -> EngineResult<Vec<CatalogRow>> {
        let command = self.session.write_command("DDL")?;
        let rows = heap::delete(
            &self.session.ctx,
            self.session.engine.catalog_heap(),
            table,
            command,
            which,
        )?;
        self.session.transaction.note_write();
        self.session.transaction.next_command()?;
        Ok(rows)
    }

    fn insert_rows(&self, rows: &[CatalogRow]) -> EngineResult<()> {
        let command = self.session.write_command("DDL")?;
        heap::insert(&self.session.ctx, self.session.engine.catalog_heap(), rows, command)?;
        self.session.transaction.note_write();
        Ok(())
    }

    /// Drops a table with its indexes.
    pub fn drop_table(&mut self, table: Oid) -> EngineResult<()> {
        self.start_ddl("DROP TABLE")?;
        let table = self.locked_table(table, LockMode::AccessExclusive)?;
        self.delete_rows(table.oid, |_| true)?;
        self.session.transaction.dropped.push(table.storage);
        for index in &table.indexes {
            self.session.transaction.dropped.push(index.storage);
        }
        self.end_ddl(Change::DropTable(table.oid))
    }

    /// Creates an index and fills it from the table. With `primary` this is ALTER TABLE ADD PRIMARY
    /// KEY.
    pub fn create_index(&mut self, new: NewIndex) -> EngineResult<Arc<IndexDef>> {
        let what = if new.constraint || new.primary { "ALTER TABLE" } else { "CREATE INDEX" };
        self.start_ddl(what)?;
        // The lock keeps writers out. It keeps readers out only if the table itself changes.
        let alters = new.constraint || new.primary;
        let mode = if alters { LockMode::AccessExclusive } else { LockMode::Share };
        let table = self.locked_table(new.table, mode)?;
        if new.primary && table.primary_key().is_some() {
            return Err(TableError::MultiplePrimaryKeys(table.name.clone()).into());
        }
        let index = Arc::new(self.make_index(&table, &new, &HashSet::new(), true)?);
        let nullable = if new.primary {
            Vec::from_iter(
                new.columns
                    .iter()
                    .map(|column| column.column)
                    .filter(|&column| !table.columns[column].not_null),
            )
        } else {
            Vec::new()
        };
        self.fill_index(&table, &index, &nullable)?;
        self.insert_rows(&[row_of_index(&index)])?;
        if !nullable.is_empty() {
            self.set_not_null(table.oid, nullable)?;
        }
        self.end_ddl(Change::AddIndex(Arc::clone(&index)))?;
        Ok(index)
    }

    /// Fills an index from its table. No row may have NULL in a column of `refuse_null`.
    fn fill_index(
        &self,
        table: &TableDef,
        index: &IndexDef,
        refuse_null: &[usize],
    ) -> EngineResult<()> {
        let tree = self.session.ctx.pool().relation(index.storage.main())?;
        let heap = self.session.heap(table)?;
        let built = build::build(&self.session.ctx, table, heap, index, &tree, refuse_null)?;
        index.valid_from.store(built.valid_from.0, Ordering::Relaxed);
        index.valid_after.store(built.valid_after.map_or(0, |xid| xid.0), Ordering::Relaxed);
        Ok(())
    }

    /// Builds indexes of a table again, all or one, each in a new file. The old file is not read:
    /// it may be damaged. Returns their names.
    pub fn reindex(&mut self, table: Oid, only: Option<Oid>) -> EngineResult<Vec<String>> {
        self.start_ddl("REINDEX")?;
        // Readers stay out, too: the commit removes the files that they would read.
        let table = self.locked_table(table, LockMode::AccessExclusive)?;
        if let Some(only) = only
            && table.index(only).is_none()
        {
            return Err(TableError::UndefinedRelation(only.to_string()).into());
        }
        let mut names = Vec::new();
        for old in table.indexes.iter().filter(|index| only.is_none_or(|only| only == index.oid)) {
            let storage = self.create_tree_file(true)?;
            let new = old.in_file(&table, storage).ok_or_else(|| invalid("an unknown column"))?;
            self.fill_index(&table, &new, &[])?;
            let is_index =
                |row: &CatalogRow| matches!(row, CatalogRow::Index { oid, .. } if *oid == old.oid);
            self.delete_rows(table.oid, is_index)?;
            self.session.transaction.dropped.push(old.storage);
            self.insert_rows(&[row_of_index(&new)])?;
            self.end_ddl(Change::ReplaceIndex(Arc::new(new)))?;
            names.push(old.name.clone());
        }
        Ok(names)
    }

    fn set_not_null(&mut self, table: Oid, columns: Vec<usize>) -> EngineResult<()> {
        let changes = |row: &CatalogRow| match row {
            CatalogRow::Column { number, .. } => columns.contains(&usize::from(*number)),
            _ => false,
        };
        let mut rows = self.delete_rows(table, changes)?;
        for row in &mut rows {
            if let CatalogRow::Column { column, .. } = row {
                column.not_null = true;
            }
        }
        self.insert_rows(&rows)?;
        self.end_ddl(Change::SetNotNull { table, columns })
    }

    /// Drops an index. An index of a constraint can be dropped only with `constraint`.
    pub fn drop_index(&mut self, index: Oid, constraint: bool) -> EngineResult<()> {
        self.start_ddl("DROP INDEX")?;
        let missing = || TableError::UndefinedRelation(index.to_string());
        let table =
            self.session.catalog().index(index).map(|(table, _)| table.oid).ok_or_else(missing)?;
        let table = self.locked_table(table, LockMode::AccessExclusive)?;
        let Some(index) = table.index(index) else { return Err(missing().into()) };
        if index.constraint && !constraint {
            return Err(TableError::RequiredByConstraint {
                table: table.name.clone(),
                index: index.name.clone(),
            }
            .into());
        }
        let is_index =
            |row: &CatalogRow| matches!(row, CatalogRow::Index { oid, .. } if *oid == index.oid);
        self.delete_rows(table.oid, is_index)?;
        self.session.transaction.dropped.push(index.storage);
        self.end_ddl(Change::DropIndex { table: table.oid, index: index.oid })
    }

    /// Truncates tables: each gets new files, and the commit removes the old ones.
    pub fn truncate(&mut self, tables: &[Oid]) -> EngineResult<()> {
        self.start_ddl("TRUNCATE TABLE")?;
        for &oid in tables {
            let table = self.locked_table(oid, LockMode::AccessExclusive)?;
            let storage = self.create_heap_file()?;
            let mut indexes = Vec::with_capacity(table.indexes.len());
            for index in &table.indexes {
                indexes.push((index.oid, self.create_tree_file(false)?));
                self.session.transaction.dropped.push(index.storage);
            }
            self.session.transaction.dropped.push(table.storage);
            let with_files = |row: &CatalogRow| !matches!(row, CatalogRow::Column { .. });
            let mut rows = self.delete_rows(oid, with_files)?;
            for row in &mut rows {
                match row {
                    CatalogRow::Table { storage: file, .. } => *file = storage,
                    CatalogRow::Index { oid, storage: file, .. } => {
                        if let Some((_, storage)) = indexes.iter().find(|index| index.0 == *oid) {
                            *file = *storage;
                        }
                    }
                    CatalogRow::Column { .. } => {}
                }
            }
            self.insert_rows(&rows)?;
            self.end_ddl(Change::SwapStorage { table: oid, storage, indexes })?;
        }
        Ok(())
    }
}

fn check_columns(new: &NewTable) -> EngineResult<()> {
    if new.columns.len() > MAX_COLUMNS {
        return Err(invalid(format!("tables can have at most {MAX_COLUMNS} columns")));
    }
    let mut names = HashSet::new();
    for column in &new.columns {
        if !names.insert(&column.name) {
            return Err(invalid(format!("column \"{}\" specified more than once", column.name)));
        }
    }
    if new.indexes.iter().filter(|index| index.primary).count() > 1 {
        return Err(TableError::MultiplePrimaryKeys(new.name.clone()).into());
    }
    Ok(())
}

fn check_index_columns(table: &TableDef, columns: &[IndexColumn]) -> EngineResult<()> {
    if columns.is_empty() || columns.len() > MAX_KEY_COLUMNS {
        return Err(invalid(format!("an index must have 1 to {MAX_KEY_COLUMNS} columns")));
    }
    if columns.iter().any(|column| column.column >= table.columns.len()) {
        return Err(invalid("an index on a column that its table does not have"));
    }
    Ok(())
}
