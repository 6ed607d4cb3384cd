//! The system views of what the server counts, by queries on them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{fresh_with, run};
use millpond::{Connection, Database, Settings, Value};

/// A pool of this many pages.
const FRAMES: i64 = 256;

fn small() -> common::Fresh {
    fresh_with(Settings::default().with("shared_buffers", "2MB").unwrap())
}

/// One number.
fn number(c: &mut Connection, sql: &str) -> i64 {
    let rows = c.query(sql, &[]).unwrap().rows;
    match rows[0][0] {
        Value::Int2(n) => n.into(),
        Value::Int4(n) => n.into(),
        Value::Int8(n) => n,
        ref other => panic!("{sql}: {other:?}"),
    }
}

/// A table of `pages` pages, about.
fn fill(c: &mut Connection, name: &str, pages: usize) {
    c.batch(&format!("create table {name} (a int primary key, filler char(100))")).unwrap();
    let filler = "x".repeat(100);
    for first in (0..pages * 50).step_by(500) {
        let rows: Vec<_> = (first..first + 500).map(|a| format!("({a}, '{filler}')")).collect();
        c.batch(&format!("insert into {name} values {}", rows.join(", "))).unwrap();
    }
}

#[test]
fn every_buffer_is_shown_once_and_the_sums_agree() {
    let fresh = small();
    let c = &mut fresh.database.connect().unwrap();
    fill(c, "t", 20);
    assert_eq!(number(c, "select count(*) from pg_buffercache"), FRAMES);
    assert_eq!(number(c, "select count(distinct bufferid) from pg_buffercache"), FRAMES);
    let used_and_unused = "select buffers_used + buffers_unused from pg_buffercache_summary()";
    assert_eq!(number(c, used_and_unused), FRAMES);
    let by_usage = "select sum(buffers)::int8 from pg_buffercache_usage_counts()";
    assert_eq!(number(c, by_usage), FRAMES);
    assert_eq!(number(c, "select count(*) from pg_buffercache_usage_counts()"), 6);
    // What a buffer holds is found by the relation's file.
    let pages = number(c, "select pg_relation_size('t'::regclass) / 8192");
    let held = "select count(*) from pg_buffercache b join pg_class c using (relfilenode)
        where c.relname = 't' and relforknumber = 0";
    assert_eq!(number(c, held), pages);
    let held = "select buffers from (
            select c.relname, count(*) as buffers from pg_buffercache b
            join pg_class c on b.relfilenode = pg_relation_filenode(c.oid) and b.reldatabase in
                (0, (select oid from pg_database where datname = current_database()))
            where b.relforknumber = 0 group by c.relname) as held
        where relname = 't'";
    assert_eq!(number(c, held), pages);
    let unused = "select count(*) from pg_buffercache where relfilenode is null and (
        relblocknumber is not null or isdirty is not null or usagecount is not null)";
    assert_eq!(number(c, unused), 0);
    // Written by a checkpoint, nothing is dirty (but what maintenance may do at any time).
    assert!(number(c, "select buffers_dirty from pg_buffercache_summary()") >= pages);
    c.batch("checkpoint").unwrap();
    assert!(number(c, "select buffers_dirty from pg_buffercache_summary()") < pages);
}

#[test]
fn io_is_counted_by_backend_type_and_context() {
    let fresh = small();
    let c = &mut fresh.database.connect().unwrap();
    fill(c, "t", 300);
    // Parallel workers count as background workers, as in PostgreSQL.
    let reads = "select sum(reads)::int8 from pg_stat_io where backend_type <> 'checkpointer'";
    let hits = "select hits from pg_stat_io
        where backend_type = 'client backend' and context = 'normal'";
    let bytes = "select sum(read_bytes)::int8 from pg_stat_io";
    let bulk = "select sum(read_bytes)::int8 from pg_stat_io where context = 'bulkread'";
    let (reads_before, bytes_before) = (number(c, reads), number(c, bytes));
    let bulk_before = number(c, bulk);
    let allocated = "select buffers_alloc from pg_stat_bgwriter";
    let reused = "select coalesce(sum(reuses), 0)::int8 from pg_stat_io";
    let (allocated_before, reused_before) = (number(c, allocated), number(c, reused));
    let read_before = number(c, bytes) / 8192;
    let (pages, count) = (
        number(c, "select pg_relation_size('t'::regclass) / 8192"),
        number(c, "select count(*) from t"),
    );
    assert_eq!(count, 15_000);
    assert!(pages > FRAMES);
    // What does not fit is read, at most a call a page.
    let bytes_gained = number(c, bytes) - bytes_before;
    assert!(bytes_gained >= (pages - FRAMES) * 8192, "{bytes_gained} bytes of {pages} pages");
    assert!(number(c, reads) - reads_before >= 1);
    // A large scan's reads are those of its ring.
    assert!(number(c, bulk) - bulk_before >= (pages - FRAMES) * 8192);
    // Each page that was read has a frame that was taken for it, or was the ring's already.
    let read = number(c, bytes) / 8192 - read_before;
    let taken = number(c, allocated) - allocated_before;
    let reused = number(c, reused) - reused_before;
    assert!(taken + reused >= read, "{taken} taken and {reused} reused for {read} pages");
    // But a ring that has grown too long gives frames to all sessions.
    assert!(
        taken + reused <= read + pages / 4,
        "{taken} taken and {reused} reused for {read} pages"
    );
    assert!(taken >= 1);
    let before = number(c, hits);
    for _ in 0..1000 {
        c.query("select a from t where a = 7", &[]).unwrap();
    }
    assert!(number(c, hits) - before >= 2000);
    let evictions = "select sum(evictions)::int8 + coalesce(sum(reuses)::int8, 0) from pg_stat_io";
    let gone = number(c, evictions);
    assert!(gone >= pages - FRAMES, "{gone} of {pages} pages");
    // Checkpoints.
    let requested = number(c, "select num_requested from pg_stat_checkpointer");
    c.batch("checkpoint").unwrap();
    assert_eq!(number(c, "select num_requested from pg_stat_checkpointer"), requested + 1);
    let done = "select num_done - num_timed - num_requested from pg_stat_checkpointer";
    assert_eq!(number(c, done), 0);
    assert!(number(c, "select buffers_written from pg_stat_checkpointer") >= 1);
    assert!(number(c, "select buffers_alloc from pg_stat_bgwriter") >= pages);
    // What can't be is NULL or has no row, as in PostgreSQL.
    assert_eq!(
        run(
            c,
            "select context, hits, reuses, fsyncs >= 1 as synced from pg_stat_io
            where backend_type = 'checkpointer'"
        ),
        "context|hits|reuses|synced\nnormal|NULL|NULL|t\nSELECT 1\n"
    );
}

#[test]
fn rows_of_a_query_go_through_a_ring_also_if_they_are_returned() {
    let fresh = small();
    let c = &mut fresh.database.connect().unwrap();
    c.batch("create table t (a int primary key, filler text)").unwrap();
    let bulk = "select sum(extend_bytes)::int8 / 8192 from pg_stat_io where context = 'bulkwrite'";
    let before = number(c, bulk);
    let insert = "insert into t select n, repeat('x', 100) from generate_series(1, 20000) n
        returning a + 1, filler = repeat('x', 100)";
    let returned = c.query(insert, &[]).unwrap().rows;
    let wanted = (2..=20_001).map(|a| vec![Value::Int4(a), Value::Bool(true)]);
    assert!(returned.iter().map(|row| row.to_vec()).eq(wanted));
    let pages = number(c, "select pg_relation_size('t') / 8192");
    let added = number(c, bulk) - before;
    assert!(pages > FRAMES && added >= pages * 9 / 10, "{added} of {pages} pages");
    // One that fails stores none.
    let twice = "insert into t select n % 30000 + 20001, '' from generate_series(0, 40000) n
        returning a";
    assert!(c.query(twice, &[]).is_err());
    assert_eq!(number(c, "select count(*) from t"), 20_000);
}

/// As PostgreSQL counts them: it is much log that asks for it, not the time.
#[test]
fn checkpoints_for_much_log_are_requested() {
    let settings = Settings::default().with("max_wal_size", "2MB").unwrap();
    let fresh = fresh_with(settings);
    let c = &mut fresh.database.connect().unwrap();
    c.batch("create table t (a int, filler char(1000))").unwrap();
    let requested = "select num_requested from pg_stat_checkpointer";
    let before = number(c, requested);
    let more = "insert into t select n, repeat('x', 1000) from generate_series(1, 300) n";
    let enough = (0..3000).find(|_| {
        c.batch(more).unwrap();
        number(c, requested) > before
    });
    assert!(enough.is_some());
    assert_eq!(number(c, "select num_timed from pg_stat_checkpointer"), 0);
}

#[test]
fn a_reset_begins_anew() {
    let fresh = small();
    let c = &mut fresh.database.connect().unwrap();
    fill(c, "t", 20);
    let hits = "select sum(hits)::int8 from pg_stat_io";
    let before = number(c, hits);
    assert!(before > 1000);
    let since = "select min(stats_reset) = max(stats_reset) as one from pg_stat_io";
    assert_eq!(run(c, since), "one\nt\nSELECT 1\n");
    let older = "select i.stats_reset > b.stats_reset as later
        from pg_stat_io i, pg_stat_bgwriter b where i.backend_type = 'checkpointer'";
    assert_eq!(run(c, "select pg_stat_reset_shared('io')"), "pg_stat_reset_shared\n\nSELECT 1\n");
    assert_eq!(run(c, older), "later\nt\nSELECT 1\n");
    assert!(number(c, hits) < before);
    // The others have not been.
    assert!(number(c, "select buffers_alloc from pg_stat_bgwriter") > 10);
    c.batch("checkpoint").unwrap();
    assert!(number(c, "select num_done from pg_stat_checkpointer") >= 1);
    c.query("select pg_stat_reset_shared()", &[]).unwrap();
    assert_eq!(number(c, "select num_done from pg_stat_checkpointer"), 0);
    let error = run(c, "select pg_stat_reset_shared('everything')");
    assert!(error.contains("unrecognized reset target") && error.contains("22023"), "{error}");
}

/// One durable commit after the other: a sync each, and at most a record or two.
#[test]
fn the_log_is_counted() {
    let fresh = small();
    let c = &mut fresh.database.connect().unwrap();
    c.batch("create table t (id int primary key, v int); insert into t values (1, 0)").unwrap();
    let records = "select wal_records from pg_stat_wal";
    let syncs = "select sum(fsyncs)::int8 from pg_stat_io where object = 'wal'";
    let written = "select sum(write_bytes)::int8 from pg_stat_io where object = 'wal'";
    c.batch("checkpoint").unwrap();
    let before = (number(c, records), number(c, syncs), number(c, written));
    for _ in 0..10 {
        c.batch("update t set v = v + 1 where id = 1").unwrap();
    }
    let after = (number(c, records), number(c, syncs), number(c, written));
    assert!(after.0 >= before.0 + 20, "an update and a commit each: {before:?} {after:?}");
    assert!(after.1 >= before.1 + 10, "{before:?} {after:?}");
    assert!(after.2 > before.2 + 10 * 100, "{before:?} {after:?}");
    assert!(number(c, "select wal_fpi from pg_stat_wal") >= 1);
    assert!(number(c, "select wal_bytes::int8 from pg_stat_wal") >= after.2);
    assert!(number(c, "select wal_buffers_full from pg_stat_wal") >= 0);
    // Commits that don't wait: also when that is said in the transaction.
    let before = number(c, syncs);
    for _ in 0..50 {
        c.batch("begin; update t set v = v + 1 where id = 1").unwrap();
        c.batch("set local synchronous_commit = off; commit").unwrap();
    }
    assert!(number(c, syncs) < before + 50);
    c.query("select pg_stat_reset_shared('wal')", &[]).unwrap();
    assert!(number(c, records) < 10);
    assert!(number(c, syncs) >= 10, "the others are not reset");
}

#[test]
fn replacement_is_measured() {
    let fresh = small();
    let c = &mut fresh.database.connect().unwrap();
    let of = |histogram: &str| {
        format!(
            "select coalesce(sum(count)::int8, 0) from millpond_stat_replacement
            where histogram = '{histogram}'"
        )
    };
    fill(c, "t", 20);
    assert_eq!(number(c, &of("regret")), 0);
    fill(c, "u", 600);
    let victims = number(c, &of("victim_usage"));
    assert!(victims >= 300, "{victims} pages left");
    assert_eq!(number(c, &of("victim_age")), victims);
    assert!(number(c, &of("examined")) >= 1);
    // Point reads that come back to pages that had to go.
    for a in (0..30_000).step_by(30) {
        c.query(&format!("select a from u where a = {a}"), &[]).unwrap();
    }
    assert!(number(c, &of("absence")) >= number(c, &of("regret")));
    assert!(number(c, &of("absence")) > 0);
    // Bounds are in order, without gaps.
    let gaps = "select count(*) from millpond_stat_replacement a
        join millpond_stat_replacement b on a.histogram = b.histogram and b.bucket = a.bucket + 1
        where b.lower_bound <> a.upper_bound + 1";
    assert_eq!(number(c, gaps), 0);
}

/// PostgreSQL 18's statistics of one session, which begin with it.
#[test]
fn a_session_has_counts_of_its_own() {
    let fresh = small();
    let (a, mut other) =
        (&mut fresh.database.connect().unwrap(), fresh.database.connect().unwrap());
    let b = &mut other;
    fill(a, "t", 20);
    let io = |pid: i64, what: &str| {
        format!("select sum({what})::int8 from pg_stat_get_backend_io({pid})")
    };
    let pid_of = |c: &mut Connection| number(c, "select pg_backend_pid()");
    let (pid_a, pid_b) = (pid_of(a), pid_of(b));
    let mine =
        "select sum(extend_bytes)::int8 from pg_catalog.pg_stat_get_backend_io(pg_backend_pid())";
    assert!(number(a, mine) >= 20 * 8192);
    assert_eq!(number(b, mine), 0);
    assert_eq!(number(b, &io(pid_a, "extend_bytes")), number(a, mine));
    let before = (number(a, &io(pid_a, "hits")), number(a, &io(pid_b, "hits")));
    for _ in 0..500 {
        b.query("select a from t where a = 7", &[]).unwrap();
    }
    let gained = number(a, &io(pid_b, "hits")) - before.1;
    assert!(gained >= 1000, "{gained}");
    assert!(number(a, &io(pid_a, "hits")) - before.0 < 1000);
    // With a parameter, for each session, under an alias, and for a pid that no session has.
    let sql =
        "select count(*) from pg_stat_get_backend_io($1) where backend_type = 'client backend'";
    let rows = a.query(sql, &[Value::Int4(pid_b as i32)]).unwrap().rows;
    assert_eq!(rows[0][0], Value::Int8(4));
    let all = "select count(*) from pg_stat_activity a, pg_stat_get_backend_io(a.pid) i
        where a.backend_type = 'client backend' and i.context = 'normal'";
    assert_eq!(number(a, all), 2);
    let lateral = all.replace(", pg_stat_get", " cross join lateral pg_catalog.pg_stat_get");
    assert_eq!(number(a, &lateral), 2);
    assert_eq!(number(a, "select count(x.object) from pg_stat_get_backend_io(0) as x"), 0);
    assert_eq!(number(a, "select count(*) from pg_stat_get_backend_io(null)"), 0);
    // A reset is of one session, and says when.
    let reset = "select count(stats_reset) from pg_stat_get_backend_io(";
    assert_eq!(number(a, &format!("{reset}{pid_b})")), 0);
    a.query(&format!("select pg_stat_reset_backend_stats({pid_b})"), &[]).unwrap();
    assert_eq!(number(a, &format!("{reset}{pid_b})")), 4);
    assert_eq!(number(a, &io(pid_b, "hits")), 0);
    assert!(number(a, &io(pid_a, "hits")) > 0);
    // What a session has done stays in the sums when it has ended, and is not its successor's,
    // which has its number.
    for _ in 0..500 {
        b.query("select a from t where a = 7", &[]).unwrap();
    }
    let hits = "select sum(hits)::int8 from pg_stat_io where backend_type = 'client backend'";
    let before = number(a, hits);
    drop(other);
    let b = &mut fresh.database.connect().unwrap();
    assert!(number(a, hits) >= before);
    assert_eq!(number(a, &format!("select count(*) from pg_stat_get_backend_io({pid_b})")), 0);
    let successor = pid_of(b);
    assert!(number(b, &io(successor, "hits")) < 1000);
    let error = run(a, "select * from pg_stat_get_backend_io(1, 2)");
    let expected = "function pg_stat_get_backend_io(integer, integer) does not exist";
    assert!(error.contains("42883") && error.contains(expected), "{error}");
}

#[test]
fn columns_are_postgresqls() {
    let fresh = small();
    let c = &mut fresh.database.connect().unwrap();
    let mut columns = |table: &str| {
        let rows = c.query(&format!("select * from {table} limit 0"), &[]).unwrap();
        let named: Vec<_> =
            rows.columns.iter().map(|c| format!("{} {}", c.name, c.type_oid)).collect();
        named.join(", ")
    };
    assert_eq!(
        columns("pg_buffercache"),
        "bufferid 23, relfilenode 26, reltablespace 26, reldatabase 26, relforknumber 21, \
         relblocknumber 20, isdirty 16, usagecount 21, pinning_backends 23"
    );
    assert_eq!(
        columns("pg_buffercache_summary()"),
        "buffers_used 23, buffers_unused 23, buffers_dirty 23, buffers_pinned 23, usagecount_avg 701"
    );
    assert_eq!(
        columns("pg_buffercache_usage_counts()"),
        "usage_count 23, buffers 23, dirty 23, pinned 23"
    );
    assert_eq!(
        columns("pg_stat_io"),
        "backend_type 25, object 25, context 25, reads 20, read_bytes 1700, read_time 701, \
         writes 20, write_bytes 1700, write_time 701, writebacks 20, writeback_time 701, \
         extends 20, extend_bytes 1700, extend_time 701, hits 20, evictions 20, reuses 20, \
         fsyncs 20, fsync_time 701, stats_reset 1184"
    );
    assert_eq!(columns("pg_stat_get_backend_io(0)"), columns("pg_stat_io"));
    assert_eq!(
        columns("pg_catalog.pg_buffercache_summary() s(a, b, c, d, e)").split(' ').next(),
        Some("a")
    );
    // Those that have no name there keep theirs.
    let some = columns("pg_buffercache_summary() s(a, b)");
    assert!(some.starts_with("a 23, b 23, buffers_dirty 23, "), "{some}");
    let some = columns("pg_stat_get_backend_io(0) s(a)");
    assert!(some.starts_with("a 25, object 25, context 25, "), "{some}");
    assert_eq!(
        columns("pg_stat_bgwriter"),
        "buffers_clean 20, maxwritten_clean 20, buffers_alloc 20, stats_reset 1184"
    );
    assert_eq!(
        columns("pg_stat_wal"),
        "wal_records 20, wal_fpi 20, wal_bytes 1700, wal_buffers_full 20, stats_reset 1184"
    );
    assert_eq!(
        columns("pg_stat_checkpointer"),
        "num_timed 20, num_requested 20, num_done 20, restartpoints_timed 20, \
         restartpoints_req 20, restartpoints_done 20, write_time 701, sync_time 701, \
         buffers_written 20, slru_written 20, stats_reset 1184"
    );
}

#[test]
fn io_times_are_measured_with_track_io_timing() {
    let fresh = small();
    let c = &mut fresh.database.connect().unwrap();
    fill(c, "t", 300);
    let reading = "select sum(read_time) > 0, sum(write_time) > 0 from pg_stat_io
        where object = 'relation' and backend_type = 'client backend'";
    // Larger than the pool, and sorted by nothing: read by the session itself, page after page.
    c.batch("set effective_io_concurrency = 0; update t set filler = 'y'").unwrap();
    assert_eq!(run(c, reading).lines().nth(1), Some("f|f"));
    c.batch("set track_io_timing = on; update t set filler = 'z'").unwrap();
    assert_eq!(
        run(c, reading).lines().nth(1).map(|row| &row[..1]),
        Some("t"),
        "{}",
        run(c, reading)
    );
    c.batch("checkpoint").unwrap();
    let synced = "select fsync_time > 0 from pg_stat_io
        where object = 'relation' and backend_type = 'checkpointer'";
    assert_eq!(run(c, synced).lines().nth(1), Some("t"));
}

#[test]
fn sizes_are_those_of_forks_and_indexes() {
    let fresh = small();
    let c = &mut fresh.database.connect().unwrap();
    fill(c, "t", 20);
    c.batch("create index t_filler on t (filler)").unwrap();
    // The map is written to when there is free space.
    c.batch("delete from t where a % 2 = 0").unwrap();
    c.batch("vacuum t").unwrap();
    let mut size = |call: &str| number(c, &format!("select {call}"));
    let (main, fsm) = (size("pg_relation_size('t')"), size("pg_relation_size('t', 'fsm')"));
    assert!(main >= 10 * 8192 && fsm >= 8192 && fsm % 8192 == 0, "{main} {fsm}");
    assert_eq!(size("pg_relation_size('t', 'main')"), main);
    assert_eq!(size("pg_relation_size('t', 'vm')") + size("pg_relation_size('t', 'init')"), 0);
    let indexes = size("pg_relation_size('t_pkey')") + size("pg_relation_size('t_filler')");
    assert!(indexes >= 4 * 8192);
    assert_eq!(size("pg_table_size('t')"), main + fsm);
    assert_eq!(size("pg_indexes_size('t')"), indexes);
    assert_eq!(size("pg_total_relation_size('t')"), main + fsm + indexes);
    assert_eq!(size("pg_table_size('t_pkey')"), size("pg_relation_size('t_pkey')"));
    assert_eq!(size("pg_indexes_size('t_pkey')"), 0);
    let file = size("pg_relation_filenode('t')");
    assert_eq!(size("relfilenode from pg_class where relname = 't'"), file);
    assert_ne!(size("pg_relation_filenode('t_pkey')"), file);
    // The catalogs, which have no files, aside.
    let without_file = "count(*) from pg_class where pg_relation_filenode(oid) is null \
        and relkind <> 'v' and relnamespace <> 'pg_catalog'::regnamespace";
    assert_eq!(size(without_file), 0);
    assert_eq!(size("count(pg_relation_filenode(1))"), 0);
    let error = c.query("select pg_relation_size('t', 'fms')", &[]).unwrap_err();
    assert_eq!((error.sqlstate.as_str(), error.message.as_str()), ("22023", "invalid fork name"));
}

#[test]
fn views_have_their_columns_in_pg_attribute() {
    let fresh = small();
    let c = &mut fresh.database.connect().unwrap();
    // What psql asks of a relation it describes.
    let described = c
        .query(
            "select a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull
            from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid
            where c.relname = 'pg_stat_io' and a.attnum > 0 and not a.attisdropped order by a.attnum",
            &[],
        )
        .unwrap()
        .rows;
    let name = |row: &Vec<Value>| match (&row[0], &row[1]) {
        (Value::Text(name), Value::Text(ty)) => format!("{name} {ty}"),
        other => panic!("{other:?}"),
    };
    let described: Vec<String> = described.iter().map(name).collect();
    assert_eq!(described[..3], ["backend_type text", "object text", "context text"]);
    assert!(described.contains(&"reads bigint".to_owned()), "{described:?}");
    // Every relation has as many as it says.
    let without = "select count(*) from pg_class c where c.relnatts <>
        (select count(*) from pg_attribute a where a.attrelid = c.oid)";
    assert_eq!(number(c, without), 0);
}

/// Queries have nothing to do with the files of other relations. One that asks for the size of a
/// relation that can't be opened is told why.
#[test]
fn a_file_that_cannot_be_opened_is_an_error_of_its_table_only() {
    let dir = tempfile::tempdir().unwrap();
    let settings = || Settings::default().with("autovacuum", "off").unwrap();
    let file = {
        let database = Database::open(dir.path(), settings()).unwrap();
        let c = &mut database.connect().unwrap();
        fill(c, "t", 20);
        fill(c, "u", 20);
        let file = number(c, "select pg_relation_filenode('u')");
        database.shutdown().unwrap();
        file
    };
    let file = dir.path().join("base").join(file.to_string());
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let database = Database::open(dir.path(), settings()).unwrap();
    let c = &mut database.connect().unwrap();
    assert_eq!(number(c, "select count(distinct filler) from t"), 1);
    assert!(number(c, "select pg_relation_size('t')") > 0);
    let error = c.query("select pg_relation_size('u')", &[]).unwrap_err();
    assert!(error.sqlstate.as_str().starts_with("58"), "{error}");
}

#[test]
fn a_recording_of_accesses_is_bounded_and_counted() {
    let none = &mut small();
    let view = "select * from millpond_stat_trace";
    assert!(none.database.connect().unwrap().query(view, &[]).unwrap().rows.is_empty());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pages.trace");
    let settings = Settings::default().with("trace_pages", file.to_str().unwrap()).unwrap();
    let fresh = fresh_with(settings.with("trace_pages_max_size", "32kB").unwrap());
    let mut connection = fresh.database.connect().unwrap();
    let c = &mut connection;
    fill(c, "t", 20);
    for _ in 0..30 {
        run(c, "select count(*) from t where a % 7 = 1 or filler is null");
        (1..1000).for_each(|a| drop(run(c, &format!("select a from t where a = {a}"))));
    }
    // The thread that writes may be a moment behind.
    let outdated = (0..10_000).any(|_| number(c, "select outdated from millpond_stat_trace") > 0);
    assert!(outdated, "{}", run(c, view));
    assert_eq!(run(c, "select failed from millpond_stat_trace"), "failed\nf\nSELECT 1\n");
    // With the last of what holds it the recording ends.
    drop(connection);
    drop(fresh);
    let bytes = |path: &std::path::Path| std::fs::metadata(path).unwrap().len();
    assert!(bytes(&file) + bytes(&dir.path().join("pages.trace.1")) <= 32 << 10);
}
