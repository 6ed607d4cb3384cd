//! Calls of window functions, and their windows.

use sqlparser::ast;

use super::aggregate::{self, arguments, is_aggregate, placed, settled_keys, undefined};
use super::level::{Clause, Level};
use super::order::sort_key;
use super::tree::{Bound, Exclude, Frame, FrameMode, Window, WindowCall, WindowFunction, column};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion, Typed, beyond};
use crate::expr::types::{Category, Ty, category, is_assignable, is_implicit, is_int, unify};
use crate::parse::{Source, ident};
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

fn windowing_error(what: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::WINDOWING_ERROR, what)
}

/// Binds the call of a window function; a column of its window stands for it.
pub(super) fn bind(
    level: &Level<'_>,
    binder: &mut Binder<'_>,
    name: &str,
    call: &ast::Function,
    over: &ast::WindowType,
) -> Result<Typed> {
    let refused = if level.in_window.get() {
        Some("window function calls cannot be nested".to_owned())
    } else if level.in_aggregate.get() {
        let what = "aggregate function calls cannot contain window function calls";
        return Err(placed(SqlError::new(SqlState::GROUPING_ERROR, what), call, binder));
    } else {
        level.clause.get().refuses_windows()
    };
    if let Some(what) = refused {
        return Err(placed(windowing_error(what), call, binder));
    }
    if call.null_treatment.is_some() {
        return Err(beyond("IGNORE NULLS"));
    }
    level.in_window.set(true);
    let bound = call_of(level, binder, name, call);
    level.in_window.set(false);
    let bound = bound?;
    let spec = level
        .within(Clause::Window, || window_of(level, binder, over))
        .map_err(|error| at_definition(error, call, level.analyzer.source))?;
    let ty = bound.ty;
    let mut collected = level.collected.borrow_mut();
    let windows = &mut collected.windows;
    let at = windows.iter().position(|window| {
        window.partition_by == spec.partition_by
            && window.order_by == spec.order_by
            && window.frame == spec.frame
    });
    let at = match at {
        Some(at) => at,
        None => {
            windows.push(Window { slot: level.analyzer.new_slot()?, ..spec });
            windows.len() - 1
        }
    };
    let window = &mut windows[at];
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
    call: &ast::Function,
) -> Result<WindowCall> {
    if is_aggregate(name) {
        let call = aggregate::over_window(level, binder, name, call)?;
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
        return Err(placed(error, call, binder));
    };
    if call.filter.is_some() {
        let error = SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "FILTER is not implemented for non-aggregate window functions",
        );
        return Err(placed(error, call, binder));
    }
    if let ast::FunctionArguments::List(list) = &call.args
        && (list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct)
            || !list.clauses.is_empty())
    {
        return Err(beyond(&format!("this form of {name}")));
    }
    let args = arguments(call, level, binder)?;
    let (args, ty) =
        typed_args(binder, name, function, args).map_err(|error| placed(error, call, binder))?;
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

/// Places an error of a window at the parenthesis that its definition begins with.
fn at_definition(mut error: SqlError, call: &ast::Function, source: Source<'_>) -> SqlError {
    // Errors of a frame's ends are elsewhere.
    if error.position.is_none() && !error.message.starts_with("frame") {
        let end = source.byte(ast::Spanned::span(call).end);
        let behind = source.sql.get(end..).unwrap_or("");
        let over = behind.to_ascii_lowercase().find("over");
        let start = over.and_then(|over| Some(over + behind.get(over..)?.find('(')?));
        error.position = start.map(|start| source.position(end + start));
    }
    error
}

/// The parts of a window's definition, with those that it takes over of a named one.
#[derive(Default, Clone, Copy)]
struct Definition<'w> {
    partition_by: &'w [ast::Expr],
    order_by: &'w [ast::OrderByExpr],
    frame: Option<&'w ast::WindowFrame>,
}

/// A window without calls. Its slot is not yet its own.
fn window_of(level: &Level<'_>, binder: &mut Binder<'_>, over: &ast::WindowType) -> Result<Window> {
    let definition = match over {
        ast::WindowType::NamedWindow(name) => named(level, name, 0)?,
        ast::WindowType::WindowSpec(spec) => definition(level, spec, 0)?,
    };
    let partition_by = definition
        .partition_by
        .iter()
        .map(|e| Ok(binder.output(e, level)?.0))
        .collect::<Result<Vec<_>>>()?;
    let mut keys = Vec::with_capacity(definition.order_by.len());
    for item in definition.order_by {
        let typed = binder.bind(&item.expr, level)?;
        keys.push((sort_key(item, typed.expr)?, typed.ty));
    }
    let types: Vec<Ty> = keys.iter().map(|(_, ty)| *ty).collect();
    let order_by: Vec<SortKey> = settled_keys(binder, keys)?;
    let frame = match definition.frame {
        Some(frame) => frame_of(level, binder, frame, &types)?,
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

/// A window of WINDOW.
fn named<'l>(level: &Level<'l>, name: &ast::Ident, depth: usize) -> Result<Definition<'l>> {
    let folded = ident(name);
    let windows = level.named_windows;
    let at = windows.iter().position(|window| ident(&window.0) == folded);
    let Some(at) = at.filter(|_| depth <= windows.len()) else {
        let error = SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("window \"{folded}\" does not exist"),
        );
        return Err(level.analyzer.source.place(error, name.span));
    };
    match &windows[at].1 {
        ast::NamedWindowExpr::NamedWindow(other) => named(level, other, depth + 1),
        ast::NamedWindowExpr::WindowSpec(spec) => definition(level, spec, depth + 1),
    }
}

fn definition<'w>(
    level: &Level<'w>,
    spec: &'w ast::WindowSpec,
    depth: usize,
) -> Result<Definition<'w>> {
    let own = Definition {
        partition_by: &spec.partition_by,
        order_by: &spec.order_by,
        frame: spec.window_frame.as_ref(),
    };
    let Some(name) = &spec.window_name else { return Ok(own) };
    let base = named(level, name, depth)?;
    let what = if !own.partition_by.is_empty() {
        "cannot override PARTITION BY clause of window"
    } else if !own.order_by.is_empty() && !base.order_by.is_empty() {
        "cannot override ORDER BY clause of window"
    } else if base.frame.is_some() {
        "cannot copy window"
    } else {
        let order_by = if base.order_by.is_empty() { own.order_by } else { base.order_by };
        return Ok(Definition { partition_by: base.partition_by, order_by, frame: own.frame });
    };
    let name = ident(name);
    Err(if what != "cannot copy window" {
        windowing_error(format!("{what} \"{name}\""))
    } else {
        let error = windowing_error(format!("{what} \"{name}\" because it has a frame clause"));
        let is_bare = own.order_by.is_empty() && own.frame.is_none();
        if is_bare { error.hint("Omit the parentheses in this OVER clause.") } else { error }
    })
}

fn frame_of(
    level: &Level<'_>,
    binder: &mut Binder<'_>,
    frame: &ast::WindowFrame,
    order: &[Ty],
) -> Result<Frame> {
    use ast::WindowFrameBound as B;
    let mode = match frame.units {
        ast::WindowFrameUnits::Rows => FrameMode::Rows,
        ast::WindowFrameUnits::Range => FrameMode::Range,
        ast::WindowFrameUnits::Groups => FrameMode::Groups,
    };
    if mode == FrameMode::Groups && order.is_empty() {
        return Err(windowing_error("GROUPS mode requires an ORDER BY clause"));
    }
    let (first, last) = (&frame.start_bound, frame.end_bound.as_ref().unwrap_or(&B::CurrentRow));
    let wrong = match (first, last) {
        (B::Following(None), _) => Some("frame start cannot be UNBOUNDED FOLLOWING"),
        (_, B::Preceding(None)) => Some("frame end cannot be UNBOUNDED PRECEDING"),
        (B::CurrentRow, B::Preceding(_)) => {
            Some("frame starting from current row cannot have preceding rows")
        }
        (B::Following(_), B::Preceding(_)) => {
            Some("frame starting from following row cannot have preceding rows")
        }
        (B::Following(_), B::CurrentRow) if frame.end_bound.is_none() => {
            Some("frame starting from following row cannot end with current row")
        }
        (B::Following(_), B::CurrentRow) => {
            Some("frame starting from following row cannot have preceding rows")
        }
        _ => None,
    };
    if let Some(what) = wrong {
        return Err(windowing_error(what));
    }
    let mut bound = |bound: &ast::WindowFrameBound, is_end: bool| -> Result<Bound> {
        Ok(match bound {
            B::CurrentRow => Bound::CurrentRow,
            B::Preceding(None) => Bound::UnboundedPreceding,
            B::Following(None) if is_end => Bound::UnboundedFollowing,
            B::Following(None) => Bound::CurrentRow,
            B::Preceding(Some(e)) => Bound::Preceding(offset(level, binder, e, mode, order)?),
            B::Following(Some(e)) => Bound::Following(offset(level, binder, e, mode, order)?),
        })
    };
    let (start, end) = (bound(first, false)?, bound(last, true)?);
    Ok(Frame { mode, start, end, exclude: Exclude::NoOthers })
}

/// How far away a frame's end is.
fn offset(
    level: &Level<'_>,
    binder: &mut Binder<'_>,
    e: &ast::Expr,
    mode: FrameMode,
    order: &[Ty],
) -> Result<Expr> {
    let (word, clause) = match mode {
        FrameMode::Rows => ("ROWS", "window ROWS"),
        FrameMode::Range => ("RANGE", "window RANGE"),
        FrameMode::Groups => ("GROUPS", "window GROUPS"),
    };
    let references = level.collected.borrow().references.len();
    // The parser takes a string here for an interval.
    let e = match e {
        ast::Expr::Interval(interval) if interval.leading_field.is_none() => {
            interval.value.as_ref()
        }
        e => e,
    };
    let typed = level.within(Clause::Frame(clause), || binder.bind(e, level))?;
    let mut uses_row = level.collected.borrow().references.len() > references;
    typed.expr.walk(&mut |part| uses_row |= matches!(part, Expr::Column(c) if level.owns(*c)));
    if uses_row {
        let error = SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!("argument of {word} must not contain variables"),
        );
        return Err(binder.source.place(error, super::targets::span_of(e)));
    }
    let ty = match (mode, order) {
        (FrameMode::Rows | FrameMode::Groups, _) => DataType::Int8,
        (FrameMode::Range, [key]) => {
            let key = match key {
                Ty::Known(ty) => ty.base(),
                Ty::Unknown => DataType::Text,
            };
            if category(key) == Category::Time {
                // The query engine would answer otherwise than PostgreSQL.
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "RANGE with an interval is not supported yet",
                ));
            }
            if category(key) != Category::Number {
                let error = SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!(
                        "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {key}"
                    ),
                );
                return Err(binder.place_at(error, e));
            }
            match key {
                // An integer may be compared at any width.
                key if is_int(key) => DataType::Int8,
                DataType::Float4 => DataType::Float8,
                key => key,
            }
        }
        (FrameMode::Range, _) => {
            return Err(windowing_error(
                "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
            ));
        }
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
