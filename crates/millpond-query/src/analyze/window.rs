//! Calls of window functions, and their windows.

use millpond_syntax::tree::{self, FrameBound, FuncCall, SortBy, WindowDef};
use millpond_types::other::{INTERVAL, TIME, TIMETZ};

use super::aggregate::types::INTERVAL as INTERVAL_TYPE;
use super::aggregate::{self, arguments, placed, settled_keys, undefined};
use super::level::{Clause, Level};
use super::order::sort_key;
use super::tree::{Bound, Exclude, Frame, FrameMode, Window, WindowCall, WindowFunction, column};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion, Typed, beyond, start_of};
use crate::expr::types::{Ty, is_assignable, is_implicit, is_int, unify};
use crate::plan::SortKey;

/// Whether a name is that of a function that only makes sense over a window.
pub(super) fn is_window_function(name: &str) -> bool {
    function_of(name).is_some()
}

fn function_of(name: &str) -> Option<WindowFunction> {
    use WindowFunction as F;
    Some(match name {
        "row_number" => F::RowNumber,
        "rank" => F::Rank,
        "dense_rank" => F::DenseRank,
        "percent_rank" => F::PercentRank,
        "cume_dist" => F::CumeDist,
        "ntile" => F::Ntile,
        "lag" => F::Lag,
        "lead" => F::Lead,
        "first_value" => F::FirstValue,
        "last_value" => F::LastValue,
        "nth_value" => F::NthValue,
        _ => return None,
    })
}

pub(super) fn windowing_error(what: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::WINDOWING_ERROR, what)
}

/// Binds the call of a window function; a column of its window stands for it.
pub(super) fn bind(
    level: &Level<'_>,
    binder: &mut Binder<'_>,
    name: &str,
    call: &FuncCall,
    at: u32,
    over: &WindowDef,
) -> Result<Typed> {
    let refused = if level.in_window.get() {
        Some("window function calls cannot be nested".to_owned())
    } else if level.in_aggregate.get() {
        let what = "aggregate function calls cannot contain window function calls";
        return Err(placed(SqlError::new(SqlState::GROUPING_ERROR, what), call, at, binder));
    } else {
        level.clause.get().refuses_windows()
    };
    if let Some(what) = refused {
        return Err(placed(windowing_error(what), call, at, binder));
    }
    level.in_window.set(true);
    let bound = call_of(level, binder, name, call, at);
    level.in_window.set(false);
    let bound = bound?;
    let spec = level
        .within(Clause::Window, || window_of(level, binder, over))
        .map_err(|error| binder.source.place(error, over.location))?;
    let ty = bound.ty;
    let mut collected = level.collected.borrow_mut();
    let windows = &mut collected.windows;
    let found = windows.iter().position(|window| {
        window.partition_by == spec.partition_by
            && window.order_by == spec.order_by
            && window.frame == spec.frame
    });
    let found = match found {
        Some(found) => found,
        None => {
            windows.push(Window { slot: level.analyzer.new_slot()?, ..spec });
            windows.len() - 1
        }
    };
    let window = &mut windows[found];
    let place = window.calls.len();
    if place >= aggregate::AGGREGATES {
        return Err(super::too_complex());
    }
    window.calls.push(bound);
    Ok(Typed::known(Expr::Column(column(window.slot, place)), ty))
}

fn call_of(
    level: &Level<'_>,
    binder: &mut Binder<'_>,
    name: &str,
    call: &FuncCall,
    at: u32,
) -> Result<WindowCall> {
    if aggregate::is_call_of_aggregate(name, call) {
        let call = aggregate::over_window(level, binder, name, call, at)?;
        return Ok(WindowCall {
            function: WindowFunction::Aggregate(call.function),
            args: call.args,
            filter: call.filter,
            ty: call.ty,
        });
    }
    let Some(function) = function_of(name) else {
        let error = SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!(
                "OVER specified, but {name} is not a window function nor an aggregate function"
            ),
        );
        return Err(placed(error, call, at, binder));
    };
    if call.agg_filter.is_some() {
        let error = SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "FILTER is not implemented for non-aggregate window functions",
        );
        return Err(placed(error, call, at, binder));
    }
    if call.agg_distinct || call.agg_star || call.agg_within_group || !call.agg_order.is_empty() {
        return Err(beyond(&format!("this form of {name}")));
    }
    let args = arguments(call, level, binder)?;
    let (args, ty) = typed_args(binder, name, function, args)
        .map_err(|error| placed(error, call, at, binder))?;
    Ok(WindowCall { function, args, filter: None, ty })
}

/// The arguments with their types, and the type of the result.
fn typed_args(
    binder: &mut Binder<'_>,
    name: &str,
    function: WindowFunction,
    args: Vec<Typed>,
) -> Result<(Vec<Expr>, DataType)> {
    use WindowFunction as F;
    let types: Vec<Ty> = args.iter().map(|arg| arg.ty).collect();
    let none = || undefined(name, &types);
    let number = |binder: &mut Binder<'_>, arg: Typed| match arg.ty {
        Ty::Known(ty) if !is_implicit(ty, DataType::Int4) => Err(none()),
        _ => binder.coerce(arg, DataType::Int4, Coercion::Implicit),
    };
    let count = match function {
        F::RowNumber | F::Rank | F::DenseRank | F::PercentRank | F::CumeDist => 0..=0,
        F::Ntile | F::FirstValue | F::LastValue => 1..=1,
        F::NthValue => 2..=2,
        F::Lag | F::Lead => 1..=3,
        F::Aggregate(_) => return Err(none()),
    };
    if !count.contains(&args.len()) {
        return Err(none());
    }
    let mut args = args.into_iter();
    let (Some(first), second, third) = (args.next(), args.next(), args.next()) else {
        let ty = match function {
            F::PercentRank | F::CumeDist => DataType::Float8,
            _ => DataType::Int8,
        };
        return Ok((Vec::new(), ty));
    };
    if function == F::Ntile {
        return Ok((vec![number(binder, first)?], DataType::Int4));
    }
    // The value may have to meet the one of a row that is not there.
    let parts = [Some(first.ty), third.as_ref().map(|value| value.ty)];
    let ty = match unify(parts.into_iter().flatten()) {
        Ok(Ty::Known(ty)) => ty.base(),
        Ok(Ty::Unknown) => DataType::Text,
        Err(_) => return Err(none()),
    };
    let mut bound = vec![binder.coerce(first, ty, Coercion::Implicit)?];
    if let Some(second) = second {
        bound.push(number(binder, second)?);
    }
    if let Some(third) = third {
        bound.push(binder.coerce(third, ty, Coercion::Implicit)?);
    }
    Ok((bound, ty))
}

/// The parts of a window's definition, with those that it takes over of a named one.
#[derive(Default, Clone, Copy)]
struct Definition<'w> {
    partition_by: &'w [tree::Expr],
    order_by: &'w [SortBy],
    frame: Option<&'w tree::Frame>,
    at: u32,
}

/// A window without calls. Its slot is not yet its own.
fn window_of(level: &Level<'_>, binder: &mut Binder<'_>, over: &WindowDef) -> Result<Window> {
    let windows = level.named_windows;
    let definition = match &over.name {
        Some(name) => named(level, windows, name, over.location)?,
        None => definition(level, windows, over)?,
    };
    let partition_by = definition
        .partition_by
        .iter()
        .map(|e| Ok(binder.output(e, level)?.0))
        .collect::<Result<Vec<_>>>()?;
    let mut keys = Vec::with_capacity(definition.order_by.len());
    for item in definition.order_by {
        let typed = binder.bind(&item.node, level)?;
        keys.push((sort_key(item, typed.expr)?, typed.ty));
    }
    let types: Vec<Ty> = keys.iter().map(|(_, ty)| *ty).collect();
    let order_by: Vec<SortKey> = settled_keys(binder, keys)?;
    let frame = match definition.frame {
        Some(frame) => frame_of(level, binder, (frame, definition.at), &types)?,
        None => Frame {
            mode: FrameMode::Range,
            start: Bound::UnboundedPreceding,
            end: Bound::CurrentRow,
            exclude: Exclude::NoOthers,
        },
    };
    let slot = super::tree::Slot(0);
    Ok(Window { slot, partition_by, order_by, frame, calls: Vec::new() })
}

/// A window of WINDOW, one of those that come before the one that names it.
fn named<'w>(
    level: &Level<'_>,
    windows: &'w [WindowDef],
    name: &str,
    at: u32,
) -> Result<Definition<'w>> {
    let is_it = |window: &WindowDef| window.name.as_deref() == Some(name);
    let Some(found) = windows.iter().position(is_it) else {
        let what = format!("window \"{name}\" does not exist");
        let error = SqlError::new(SqlState::UNDEFINED_OBJECT, what);
        return Err(level.analyzer.source.place(error, at));
    };
    definition(level, &windows[..found], &windows[found])
}

fn definition<'w>(
    level: &Level<'_>,
    windows: &'w [WindowDef],
    spec: &'w WindowDef,
) -> Result<Definition<'w>> {
    let own = Definition {
        partition_by: &spec.partition_clause,
        order_by: &spec.order_clause,
        frame: spec.frame.as_ref(),
        at: spec.location,
    };
    let Some(name) = &spec.refname else { return Ok(own) };
    let base = named(level, windows, name, spec.location)?;
    let what = if !own.partition_by.is_empty() {
        "cannot override PARTITION BY clause of window"
    } else if !own.order_by.is_empty() && !base.order_by.is_empty() {
        "cannot override ORDER BY clause of window"
    } else if base.frame.is_some() {
        "cannot copy window"
    } else {
        let order_by = if base.order_by.is_empty() { own.order_by } else { base.order_by };
        return Ok(Definition { partition_by: base.partition_by, order_by, ..own });
    };
    let error = if what != "cannot copy window" {
        windowing_error(format!("{what} \"{name}\""))
    } else {
        let error = windowing_error(format!("{what} \"{name}\" because it has a frame clause"));
        let is_bare = own.order_by.is_empty() && own.frame.is_none();
        if is_bare { error.hint("Omit the parentheses in this OVER clause.") } else { error }
    };
    Err(level.analyzer.source.place(error, spec.location))
}

fn frame_of(
    level: &Level<'_>,
    binder: &mut Binder<'_>,
    (frame, at): (&tree::Frame, u32),
    order: &[Ty],
) -> Result<Frame> {
    let mode = match frame.mode {
        tree::FrameMode::Rows => FrameMode::Rows,
        tree::FrameMode::Range => FrameMode::Range,
        tree::FrameMode::Groups => FrameMode::Groups,
    };
    if mode == FrameMode::Groups && order.is_empty() {
        let error = windowing_error("GROUPS mode requires an ORDER BY clause");
        return Err(binder.source.place(error, at));
    }
    let exclude = match frame.exclusion {
        tree::FrameExclusion::NoOthers => Exclude::NoOthers,
        tree::FrameExclusion::CurrentRow => Exclude::CurrentRow,
        tree::FrameExclusion::Group => Exclude::Group,
        tree::FrameExclusion::Ties => Exclude::Ties,
    };
    let has_offset = [Some(&frame.start), frame.end.as_ref()].into_iter().flatten().any(|bound| {
        matches!(bound, FrameBound::OffsetPreceding(_) | FrameBound::OffsetFollowing(_))
    });
    if mode == FrameMode::Range && has_offset && order.len() != 1 {
        let error = windowing_error(
            "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
        );
        return Err(binder.source.place(error, at));
    }
    let mut bound = |bound: &FrameBound| -> Result<Bound> {
        Ok(match bound {
            FrameBound::CurrentRow => Bound::CurrentRow,
            FrameBound::UnboundedPreceding => Bound::UnboundedPreceding,
            FrameBound::UnboundedFollowing => Bound::UnboundedFollowing,
            FrameBound::OffsetPreceding(e) => {
                Bound::Preceding(offset(level, binder, e, mode, order)?)
            }
            FrameBound::OffsetFollowing(e) => {
                Bound::Following(offset(level, binder, e, mode, order)?)
            }
        })
    };
    let start = bound(&frame.start)?;
    let end = bound(frame.end.as_ref().unwrap_or(&FrameBound::CurrentRow))?;
    Ok(Frame { mode, start, end, exclude })
}

/// How far away a frame's end is.
fn offset(
    level: &Level<'_>,
    binder: &mut Binder<'_>,
    e: &tree::Expr,
    mode: FrameMode,
    order: &[Ty],
) -> Result<Expr> {
    let (word, clause) = match mode {
        FrameMode::Rows => ("ROWS", "window ROWS"),
        FrameMode::Range => ("RANGE", "window RANGE"),
        FrameMode::Groups => ("GROUPS", "window GROUPS"),
    };
    let references = level.collected.borrow().references.len();
    let typed = level.within(Clause::Frame(clause), || binder.bind(e, level))?;
    let mut uses_row = level.collected.borrow().references.len() > references;
    typed.expr.walk(&mut |part| uses_row |= matches!(part, Expr::Column(c) if level.owns(*c)));
    if uses_row {
        let error = SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!("argument of {word} must not contain variables"),
        );
        return Err(binder.source.place(error, start_of(e)));
    }
    let ty = match (mode, order) {
        (FrameMode::Rows | FrameMode::Groups, _) => DataType::Int8,
        (FrameMode::Range, [key]) => {
            let key = match key {
                Ty::Known(ty) => ty.base(),
                Ty::Unknown => DataType::Text,
            };
            let ty = distance_type(key, typed.ty);
            ty.map_err(|error| binder.place_at(error, e))?
        }
        (FrameMode::Range, _) => return Err(SqlError::internal("RANGE over several columns")),
    };
    if let Ty::Known(own) = typed.ty
        && !is_assignable(own, ty)
    {
        let error = SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("argument of {word} must be type {ty}, not type {own}"),
        );
        return Err(binder.place_at(error, e));
    }
    binder
        .coerce(typed, ty, Coercion::Assignment)
        .map_err(|error| binder.place_literal(error, &[e]))
}

/// The type of an offset of RANGE over an order by values of a type.
fn distance_type(key: DataType, offset: Ty) -> Result<DataType> {
    const LEAD: &str = "RANGE with offset PRECEDING/FOLLOWING is not supported for column type";
    let refused = |what: String| SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what);
    let shown = if key.is_string() { DataType::Text } else { key };
    let wanted = match key {
        // An integer may be compared at any width.
        key if is_int(key) => DataType::Int8,
        DataType::Float4 | DataType::Float8 => DataType::Float8,
        DataType::Numeric { .. } => key,
        DataType::Date | DataType::Timestamp(_) | DataType::Timestamptz(_) => INTERVAL_TYPE,
        DataType::Other { oid: TIME | TIMETZ | INTERVAL, .. } => INTERVAL_TYPE,
        _ => return Err(refused(format!("{LEAD} {shown}"))),
    };
    match offset {
        Ty::Known(own) if own.oid() != wanted.oid() && !is_implicit(own, wanted) => {
            let error = refused(format!("{LEAD} {shown} and offset type {}", own.base()));
            Err(error.hint("Cast the offset value to an appropriate type."))
        }
        _ => Ok(wanted),
    }
}
