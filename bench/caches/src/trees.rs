//! Point reads by key, with all data in memory: rows of a 4-byte key and 100 bytes, read in
//! transactions of 256 reads.
//!
//! Millpond reads a table: first its primary key's tree, then the row under a snapshot. The others
//! store the value in the tree. Each has 1 GiB of cache (LMDB maps its file and has the system's).

use std::path::Path;
use std::sync::Arc;

use millpond_engine::catalog::{ColumnDef, IndexColumn, NewIndex, NewTable, TableDef};
use millpond_engine::lmgr::LockMode;
use millpond_engine::session::TransactionOptions;
use millpond_engine::table::{RowBatch, RowBuf};
use millpond_engine::types::key::KeyOrder;
use millpond_engine::types::{DataType, Datum};
use millpond_engine::{Engine, EngineConfig, EngineResult, Session};

use crate::keys::Keys;
use crate::measure::{self, Table};
use crate::{How, Result};

const CACHE_BYTES: usize = 1 << 30;
const VALUE_BYTES: usize = 100;

/// A value that identifies its key.
fn value(key: u32) -> [u8; VALUE_BYTES] {
    let mut value = [b'x'; VALUE_BYTES];
    for (place, byte) in value.iter_mut().enumerate().take(8) {
        *byte = b'a' + (key >> (4 * place) & 15) as u8;
    }
    value
}

/// A summary of a value, enough to see that it is the right one.
fn digest(value: &[u8]) -> u64 {
    debug_assert_eq!(value.len(), VALUE_BYTES);
    value.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Reads a batch of keys in one transaction.
type Work<'a> = Box<dyn FnMut(&[u32]) -> u64 + 'a>;

trait Tree: Sync {
    fn name(&self) -> String;
    fn work(&self) -> Work<'_>;
}

struct Millpond {
    engine: Arc<Engine>,
    table: Arc<TableDef>,
}

fn transaction<R>(
    session: &mut Session,
    work: impl FnOnce(&mut Session) -> EngineResult<R>,
) -> EngineResult<R> {
    session.begin(TransactionOptions::default())?;
    session.start_statement()?;
    let result = work(session)?;
    session.end_statement();
    session.commit()?;
    Ok(result)
}

impl Millpond {
    fn load(path: &Path, rows: u32) -> Result<Self> {
        let mut config = EngineConfig::new(path);
        config.buffers = CACHE_BYTES / 8192;
        config.autovacuum.enabled = false;
        let engine = Engine::open(config)?;
        let mut session = engine.session()?;
        let new = NewTable {
            name: "rows".into(),
            columns: vec![
                ColumnDef::new("key", DataType::Int4).not_null(),
                ColumnDef::new("value", DataType::Text),
            ],
            fillfactor: 100,
            indexes: Vec::new(),
        };
        let table = transaction(&mut session, |session| session.ddl().create_table(new))?;
        transaction(&mut session, |session| {
            session.lock_table(&table, LockMode::RowExclusive)?;
            let mut batch = RowBatch::new();
            for key in 0..rows {
                let bytes = value(key);
                let text = std::str::from_utf8(&bytes).unwrap_or_default();
                session.add_to_batch(
                    &table,
                    &[Datum::Int4(key as i32), Datum::Text(text)],
                    &mut batch,
                )?;
                if batch.byte_len() > 60_000 {
                    session.insert_batch(&table, &mut batch)?;
                }
            }
            session.insert_batch(&table, &mut batch)
        })?;
        let key = NewIndex {
            name: None,
            table: table.oid,
            columns: vec![IndexColumn { column: 0, order: KeyOrder::ASC }],
            unique: true,
            primary: true,
            constraint: true,
            fillfactor: 90,
        };
        transaction(&mut session, |session| session.ddl().create_index(key))?;
        session.maintenance().vacuum(table.oid)?;
        engine.checkpoint()?;
        let table = Arc::clone(session.catalog().table_by_name("rows").ok_or("no table")?);
        drop(session);
        Ok(Self { engine, table })
    }
}

impl Tree for Millpond {
    fn name(&self) -> String {
        "millpond-engine: table by primary key".to_owned()
    }

    fn work(&self) -> Work<'_> {
        let mut session = self.engine.session().expect("a session");
        let index = self.table.primary_key().expect("a primary key");
        let mut row = RowBuf::new();
        Box::new(move |keys| {
            let read = transaction(&mut session, |session| {
                session.lock_table(&self.table, LockMode::AccessShare)?;
                let mut sum = 0;
                for key in keys {
                    assert!(session.lookup(
                        &self.table,
                        index,
                        &[Datum::Int4(*key as i32)],
                        &mut row
                    )?);
                    match row.column(&self.table, 1) {
                        Ok(Datum::Text(text)) => sum ^= digest(text.as_bytes()),
                        other => panic!("{key}: {other:?}"),
                    }
                }
                Ok(sum)
            });
            read.expect("read")
        })
    }
}

type Bytes = heed::types::Bytes;

struct Lmdb {
    env: &'static heed::Env,
    rows: heed::Database<'static, Bytes, Bytes>,
}

impl Lmdb {
    fn load(path: &Path, rows: u32) -> Result<Self> {
        std::fs::create_dir_all(path)?;
        // SAFETY: no other process or thread uses the file of this new directory.
        let env = unsafe { heed::EnvOpenOptions::new().map_size(8 << 30).open(path)? };
        // The database borrows it until the process ends.
        let env: &'static heed::Env = Box::leak(Box::new(env));
        let made = env.create_databases_and_commit(env.write_txn()?, |opener, txn| {
            let database = opener.create_database::<Bytes, Bytes>(txn, None)?;
            Ok::<_, heed::Error>(heed::CommitOrAbort::<_, ()>::Commit(database))
        })?;
        let table = made.unwrap_commit();
        let mut txn = env.write_txn()?;
        for key in 0..rows {
            table.put_with_flags(
                &mut txn,
                heed::PutFlags::APPEND,
                &key.to_be_bytes(),
                &value(key),
            )?;
        }
        txn.commit()?;
        Ok(Self { env, rows: table })
    }
}

impl Tree for Lmdb {
    fn name(&self) -> String {
        "LMDB (heed)".to_owned()
    }

    fn work(&self) -> Work<'_> {
        Box::new(|keys| {
            let txn = self.env.read_txn().expect("a transaction");
            keys.iter().fold(0, |sum, key| {
                let value = self.rows.get(&txn, &key.to_be_bytes()).expect("read");
                sum ^ digest(value.expect("a value"))
            })
        })
    }
}

const ROWS: redb::TableDefinition<'_, u32, &[u8]> = redb::TableDefinition::new("rows");

struct Redb(redb::Database);

impl Redb {
    fn load(path: &Path, rows: u32) -> Result<Self> {
        let database = redb::Builder::new().set_cache_size(CACHE_BYTES).create(path)?;
        let txn = database.begin_write()?;
        {
            let mut table = txn.open_table(ROWS)?;
            for key in 0..rows {
                table.insert(key, value(key).as_slice())?;
            }
        }
        txn.commit()?;
        Ok(Self(database))
    }
}

impl Tree for Redb {
    fn name(&self) -> String {
        "redb".to_owned()
    }

    fn work(&self) -> Work<'_> {
        use redb::ReadableDatabase;
        Box::new(|keys| {
            let txn = self.0.begin_read().expect("a transaction");
            let table = txn.open_table(ROWS).expect("the table");
            keys.iter().fold(0, |sum, key| {
                let value = table.get(*key).expect("read").expect("a value");
                sum ^ digest(value.value())
            })
        })
    }
}

#[cfg(feature = "rocksdb")]
struct Rocks(rocksdb::DB);

#[cfg(feature = "rocksdb")]
impl Rocks {
    fn load(path: &Path, rows: u32) -> Result<Self> {
        let mut blocks = rocksdb::BlockBasedOptions::default();
        blocks.set_block_cache(&rocksdb::Cache::new_lru_cache(CACHE_BYTES)?);
        blocks.set_block_size(8192);
        blocks.set_bloom_filter(10.0, false);
        blocks.set_data_block_index_type(rocksdb::DataBlockIndexType::BinaryAndHash);
        let mut options = rocksdb::Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&blocks);
        let database = rocksdb::DB::open(&options, path)?;
        for first in (0..rows).step_by(1000) {
            let mut batch = rocksdb::WriteBatch::default();
            for key in first..rows.min(first + 1000) {
                batch.put(key.to_be_bytes(), value(key));
            }
            database.write(batch)?;
        }
        database.flush()?;
        database.compact_range(None::<&[u8]>, None::<&[u8]>);
        Ok(Self(database))
    }
}

#[cfg(feature = "rocksdb")]
impl Tree for Rocks {
    fn name(&self) -> String {
        "RocksDB (bloom filter, hash index in blocks)".to_owned()
    }

    fn work(&self) -> Work<'_> {
        Box::new(|keys| {
            keys.iter().fold(0, |sum, key| {
                let value = self.0.get_pinned(key.to_be_bytes()).expect("read");
                sum ^ digest(&value.expect("a value"))
            })
        })
    }
}

/// Runs the whole comparison.
pub fn run(how: &How, rows: u32) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let at = |name| directory.path().join(name);
    let trees: Vec<Box<dyn Tree>> = vec![
        Box::new(Millpond::load(&at("millpond"), rows)?),
        Box::new(Lmdb::load(&at("lmdb"), rows)?),
        Box::new(Redb::load(&at("redb"), rows)?),
        #[cfg(feature = "rocksdb")]
        Box::new(Rocks::load(&at("rocksdb"), rows)?),
    ];
    let every: Vec<u32> = (0..rows).collect();
    let wanted = every.iter().fold(0, |sum, key| sum ^ digest(&value(*key)));
    for tree in &trees {
        // Fills the caches, and checks that all return the same values.
        let mut work = tree.work();
        let sum = every.chunks(256).fold(0, |sum, keys| sum ^ work(keys));
        assert_eq!(sum, wanted, "{}", tree.name());
    }
    let mut table = Table::new("millions a second", trees.iter().map(|tree| tree.name()));
    for keys in [Keys::Uniform, Keys::Zipfian, Keys::One] {
        for threads in &how.threads {
            let drawn = keys.draw(rows, *threads);
            let mut results = vec![Vec::new(); trees.len()];
            for _ in 0..how.runs {
                for (tree, results) in trees.iter().zip(&mut results) {
                    results.push(measure::rate(&drawn, how.time(), || tree.work()).millions);
                }
            }
            table.column(
                format!("{}, {threads}", keys.name()),
                results.iter().map(|rates| measure::cell(rates, 2)),
            );
        }
    }
    table.print(&format!(
        "Point reads of {rows} rows of {VALUE_BYTES} bytes, in memory; keys, threads"
    ));
    Ok(())
}
