//! What one session has read and written.

use super::catalog::{ANY, FLOAT8, INT4, INT8, NUMERIC, Proc, TEXT, TIMESTAMPTZ, VOID, proc};
use super::row_list::RowList;
use super::value::body;
use super::{Columns, rows};
use crate::Datum;
use crate::Value;
use crate::error::{Result, SqlError};
use crate::system_relations::backend_io;

/// Those of `pg_stat_io`.
const COLUMNS: Columns = &[
    (Some("backend_type"), TEXT),
    (Some("object"), TEXT),
    (Some("context"), TEXT),
    (Some("reads"), INT8),
    (Some("read_bytes"), NUMERIC),
    (Some("read_time"), FLOAT8),
    (Some("writes"), INT8),
    (Some("write_bytes"), NUMERIC),
    (Some("write_time"), FLOAT8),
    (Some("writebacks"), INT8),
    (Some("writeback_time"), FLOAT8),
    (Some("extends"), INT8),
    (Some("extend_bytes"), NUMERIC),
    (Some("extend_time"), FLOAT8),
    (Some("hits"), INT8),
    (Some("evictions"), INT8),
    (Some("reuses"), INT8),
    (Some("fsyncs"), INT8),
    (Some("fsync_time"), FLOAT8),
    (Some("stats_reset"), TIMESTAMPTZ),
];

pub(super) static PROCS: &[Proc] = &[
    proc(0, "pg_stat_get_backend_io", &[INT4], ANY, rows(COLUMNS, rows_of)).volatile(),
    proc(
        0,
        "pg_stat_reset_backend_stats",
        &[INT4],
        VOID,
        body!(env, |pid: i32| {
            if let Some(server) = env.facts.server {
                server.statistics().reset_backend(pid.into());
            }
            ""
        }),
    )
    .volatile(),
];

fn rows_of(args: &[Datum<'_>], list: &mut RowList<'_>) -> Result<()> {
    let (Some(Datum::Int4(pid)), Some(server)) = (args.first(), list.env.facts.server) else {
        return Ok(());
    };
    for row in backend_io(server.statistics(), *pid)? {
        let row: [Value; 20] =
            row.try_into().map_err(|_| SqlError::internal("a row of other columns"))?;
        list.push(row)?;
    }
    Ok(())
}
