//! Functions whose answers depend on the session and the time.
//!
//! In a plan they stand as placeholders. Each run replaces them: those without arguments by their
//! value, the others by functions that have captured the run's scanner.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType as Arrow;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{ScalarValue, internal_err};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan, ScalarUDF};

use super::locks::{self, LockCalls};
use super::scalar::{function, number, text, utf8, utf8_or_null};
use millpond_query::advisory;
use millpond_query::error::{SqlError, SqlState};
use millpond_query::query::{RelationSize, SessionInfo, TableScanner};
use millpond_query::relation_size::fork_bytes;

type Bind = fn(&Arc<dyn TableScanner>, &Arc<SessionInfo>, &str) -> Arc<ScalarUDF>;

/// Name, number of arguments, result, and how to make the real function.
const FUNCTIONS: &[(&str, (usize, usize), Arrow, Bind)] = &[
    ("current_database", (0, 0), Arrow::Utf8, |_, info, name| constant(name, &info.database)),
    ("current_catalog", (0, 0), Arrow::Utf8, |_, info, name| constant(name, &info.database)),
    ("current_user", (0, 0), Arrow::Utf8, |_, info, name| constant(name, &info.user)),
    ("session_user", (0, 0), Arrow::Utf8, |_, info, name| constant(name, &info.user)),
    ("current_role", (0, 0), Arrow::Utf8, |_, info, name| constant(name, &info.user)),
    ("user", (0, 0), Arrow::Utf8, |_, info, name| constant(name, &info.user)),
    ("pg_backend_pid", (0, 0), Arrow::Int32, |_, info, name| {
        let pid = info.pid;
        function(name, (0, 0), Arrow::Int32, move |_| Ok(ScalarValue::from(pid)))
    }),
    ("current_setting", (1, 2), Arrow::Utf8, |_, info, name| {
        let info = Arc::clone(info);
        function(name, (1, 2), Arrow::Utf8, move |args| setting(&info, args))
    }),
    ("pg_stat_reset_shared", (0, 1), Arrow::Utf8, |_, info, name| {
        let info = Arc::clone(info);
        function(name, (0, 1), Arrow::Utf8, move |args| reset(&info, args))
    }),
    ("pg_reload_conf", (0, 0), Arrow::Boolean, |_, info, name| {
        let server = info.server.clone();
        function(name, (0, 0), Arrow::Boolean, move |_| {
            // As in PostgreSQL it only asks for that. What is wrong with the files is in the
            // server's log and in pg_file_settings.
            let Some(server) = server.as_ref().and_then(std::sync::Weak::upgrade) else {
                return Ok(ScalarValue::from(false));
            };
            server.reload_configuration();
            Ok(ScalarValue::from(true))
        })
    }),
    ("pg_stat_reset_backend_stats", (1, 1), Arrow::Utf8, |_, info, name| {
        let info = Arc::clone(info);
        function(name, (1, 1), Arrow::Utf8, move |args| {
            let pid = number(args, 0);
            info.statistics.iter().zip(pid).for_each(|(all, pid)| all.reset_backend(pid));
            Ok(utf8_or_null(pid.map(|_| String::new())))
        })
    }),
    ("pg_blocking_pids", (1, 1), Arrow::Utf8, |_, info, name| {
        let info = Arc::clone(info);
        function(name, (1, 1), Arrow::Utf8, move |args| {
            Ok(utf8_or_null(number(args, 0).map(|pid| pid_array(&blocking_pids(&info, pid)))))
        })
    }),
    ("pg_isolation_test_session_is_blocked", (2, 2), Arrow::Boolean, |_, info, name| {
        let info = Arc::clone(info);
        function(name, (2, 2), Arrow::Boolean, move |args| is_blocked(&info, args))
    }),
    ("pg_relation_size", (1, 2), Arrow::Int64, size),
    ("pg_table_size", (1, 1), Arrow::Int64, size),
    ("pg_indexes_size", (1, 1), Arrow::Int64, size),
    ("pg_total_relation_size", (1, 1), Arrow::Int64, size),
    ("pg_relation_filenode", (1, 1), Arrow::Int64, filenode),
];

fn constant(name: &str, value: &str) -> Arc<ScalarUDF> {
    let value = value.to_owned();
    function(name, (0, 0), Arrow::Utf8, move |_| Ok(utf8(value.clone())))
}

fn size(scanner: &Arc<dyn TableScanner>, _: &Arc<SessionInfo>, name: &str) -> Arc<ScalarUDF> {
    let scanner = Arc::clone(scanner);
    let of: fn(RelationSize) -> u64 = match name {
        "pg_table_size" => RelationSize::table,
        "pg_indexes_size" => |size| size.indexes,
        "pg_total_relation_size" => RelationSize::total,
        _ => |size| size.main,
    };
    function(name, (1, 2), Arrow::Int64, move |args| {
        let size = oid(args).map_or(Ok(None), |oid| scanner.relation_size(oid));
        let size = size.map_err(|error| DataFusionError::External(Box::new(error)))?;
        let bytes = match args.len() {
            2 => match text(args, 1) {
                Some(fork) => {
                    let of = fork_bytes(&fork);
                    size.map(of.map_err(|error| DataFusionError::External(Box::new(error)))?)
                }
                None => None,
            },
            _ => size.map(of),
        };
        Ok(ScalarValue::Int64(bytes.map(|bytes| bytes as i64)))
    })
}

/// The relation that is the first argument.
fn oid(args: &[ScalarValue]) -> Option<u32> {
    number(args, 0).and_then(|oid| u32::try_from(oid).ok())
}

fn filenode(scanner: &Arc<dyn TableScanner>, _: &Arc<SessionInfo>, name: &str) -> Arc<ScalarUDF> {
    let scanner = Arc::clone(scanner);
    function(name, (1, 1), Arrow::Int64, move |args| {
        let file = oid(args).and_then(|oid| scanner.relation_filenode(oid));
        Ok(ScalarValue::Int64(file.map(i64::from)))
    })
}

fn setting(info: &SessionInfo, args: &[ScalarValue]) -> DfResult<ScalarValue> {
    let Some(name) = text(args, 0) else { return Ok(ScalarValue::Utf8(None)) };
    let found = info.settings.iter().find(|setting| setting.name.eq_ignore_ascii_case(&name));
    let may_miss = matches!(args.get(1), Some(ScalarValue::Boolean(Some(true))));
    match found {
        None if !may_miss => Err(DataFusionError::External(Box::new(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("unrecognized configuration parameter \"{name}\""),
        )))),
        found => Ok(utf8_or_null(found.map(|setting| setting.setting.clone()))),
    }
}

/// Returns `void`, which clients see as an empty text.
fn reset(info: &SessionInfo, args: &[ScalarValue]) -> DfResult<ScalarValue> {
    let target = text(args, 0);
    // NULL resets everything, as no argument does.
    let done = info.statistics.iter().try_for_each(|all| all.reset(target.as_deref()));
    done.map_err(|error| DataFusionError::External(Box::new(error)))?;
    Ok(utf8(""))
}

fn blocking_pids(info: &SessionInfo, pid: i64) -> Vec<u32> {
    info.statistics.iter().flat_map(|statistics| statistics.blocking_pids(pid)).collect()
}

/// Arrays are text here.
fn pid_array(pids: &[u32]) -> String {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    format!("{{{}}}", pids.join(","))
}

fn is_blocked(info: &SessionInfo, args: &[ScalarValue]) -> DfResult<ScalarValue> {
    let (Some(pid), Some(others)) = (number(args, 0), text(args, 1)) else {
        return Ok(ScalarValue::Boolean(None));
    };
    let others = advisory::pids(&others).map_err(|e| DataFusionError::External(Box::new(e)))?;
    Ok(ScalarValue::from(blocking_pids(info, pid).iter().any(|pid| others.contains(pid))))
}

/// What stands in a plan until a run replaces it.
pub fn placeholders() -> Vec<Arc<ScalarUDF>> {
    let placeholder = |(name, args, returns, _): &(&'static str, (usize, usize), Arrow, Bind)| {
        let name = *name;
        function(name, *args, returns.clone(), move |_| {
            internal_err!("{name}() was not bound to a session")
        })
    };
    FUNCTIONS.iter().map(placeholder).chain(locks::placeholders()).collect()
}

fn binder(name: &str) -> Option<Bind> {
    FUNCTIONS.iter().find(|function| function.0 == name).map(|function| function.3)
}

/// Whether a plan must be looked at again at each run: it calls one of these functions, or the
/// clock.
pub fn asks_session(plan: &LogicalPlan) -> DfResult<bool> {
    const CLOCK: &[&str] = &["now", "current_date", "current_time", "current_timestamp"];
    let mut asks = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::ScalarFunction(call) = expr
                    && (binder(call.name()).is_some()
                        || locks::is_lock(call.name())
                        || CLOCK.contains(&call.name()))
                {
                    asks = true;
                    return Ok(TreeNodeRecursion::Stop);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(asks)
}

/// Replaces the placeholders. Functions that lock send their calls to `calls`.
pub fn bind_session(
    plan: LogicalPlan,
    scanner: &Arc<dyn TableScanner>,
    calls: &LockCalls,
) -> DfResult<LogicalPlan> {
    let info = Arc::new(scanner.session());
    let bound = |name: &str| match binder(name) {
        Some(bind) => Some(bind(scanner, &info, name)),
        None => locks::bind(name, calls),
    };
    let plan = plan.transform_up_with_subqueries(|node| {
        node.map_expressions(|expr| {
            expr.transform_up(|expr| match expr {
                Expr::ScalarFunction(call) => Ok(match bound(call.name()) {
                    None => Transformed::no(Expr::ScalarFunction(call)),
                    Some(function) => {
                        let args = call.args;
                        Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(
                            function, args,
                        )))
                    }
                }),
                other => Ok(Transformed::no(other)),
            })
        })
    })?;
    Ok(plan.data)
}
