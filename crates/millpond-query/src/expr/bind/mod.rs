//! From the parser's expressions to bound ones: [`Binder::bind`] looks at the form of an expression
//! and hands it to the file that knows the form.

mod argument;
mod array;
mod call;
mod call_errors;
mod cast_call;
mod coerce;
mod condition;
mod in_list;
mod literal;
mod names;
mod object_cast;
mod operator;
mod operator_call;
mod place;
mod record;
mod row;
mod subquery;
mod value_function;

use millpond_engine::session::Session;
use millpond_syntax::tree::{self, AExpr, AExprKind, BoolExprType, Node, Operand, TypeCast};

pub(crate) use call::result_type;
pub use coerce::Coercion;
pub(crate) use names::ambiguous_column;
pub use names::{NoColumns, NoFrom, Scope, missing_from, undefined_column};
pub(crate) use object_cast::tid_of;
pub(crate) use place::start_of;
pub(crate) use record::{RecordType, RecordTypes, WholeRow, field_call};
pub(crate) use row::parts_of_row;
pub(crate) use value_function::value_function_name;

use super::Expr;
use super::types::Ty;
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::lex::Literals;
use crate::parse::{Source, check_collation, data_type, too_complex};

/// What is known about a statement's parameters.
#[derive(Debug)]
pub enum ParamTypes<'a> {
    /// Parameters of a prepared statement: given types, and those found so far.
    Declared(Vec<Option<DataType>>),
    /// Literals that the lexer has lifted out, and the types that those in quotes get.
    Lifted(&'a Literals, Vec<Option<DataType>>),
    /// There can be none.
    None,
}

impl<'a> ParamTypes<'a> {
    /// Of literals, whose types are still to be found.
    pub fn lifted(literals: &'a Literals) -> Self {
        ParamTypes::Lifted(literals, vec![None; literals.len()])
    }

    /// The same, to bind the statement once more.
    pub(crate) fn again(&self) -> ParamTypes<'a> {
        match self {
            ParamTypes::Declared(types) => ParamTypes::Declared(types.clone()),
            ParamTypes::Lifted(literals, _) => ParamTypes::lifted(literals),
            ParamTypes::None => ParamTypes::None,
        }
    }

    /// How many parameters there are, as far as known.
    pub(crate) fn count(&self) -> usize {
        match self {
            ParamTypes::Declared(types) => types.len(),
            ParamTypes::Lifted(literals, _) => literals.len(),
            ParamTypes::None => 0,
        }
    }
}

/// A bound expression with its type.
#[derive(Debug, Clone)]
pub struct Typed {
    pub(crate) expr: Expr,
    pub(crate) ty: Ty,
}

impl Typed {
    pub(crate) fn known(expr: Expr, ty: DataType) -> Self {
        Typed { expr, ty: Ty::Known(ty) }
    }

    pub(crate) fn bool(expr: Expr) -> Self {
        Self::known(expr, DataType::Bool)
    }
}

/// Binds the expressions of one statement.
pub struct Binder<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) params: ParamTypes<'a>,
    /// The record types that the statement has.
    pub(crate) records: RecordTypes,
    /// What of [`DEPTH`] is used up where it is now.
    depth: usize,
    /// Whose statement it is: it may be told to stop.
    session: Option<&'a Session>,
}

/// How deep expressions may be. A step of a chain of operators takes one, any other level takes
/// [`LEVEL`]. Half a thread's stack of 2 MiB is enough for it, without optimization, too.
const DEPTH: usize = 400;
const LEVEL: usize = 4;

impl<'a> Binder<'a> {
    pub fn new(source: Source<'a>, params: ParamTypes<'a>) -> Self {
        Binder { source, params, records: RecordTypes::default(), depth: 0, session: None }
    }

    /// The same for a statement of a session, which may be cancelled.
    pub(crate) fn of_session(
        source: Source<'a>,
        params: ParamTypes<'a>,
        session: &'a Session,
    ) -> Self {
        Binder { session: Some(session), ..Binder::new(source, params) }
    }

    /// Whether literals have been lifted out: then numbers in ORDER BY or GROUP BY are not to be
    /// seen.
    pub(crate) fn is_lifted(&self) -> bool {
        matches!(self.params, ParamTypes::Lifted(..))
    }

    /// Binds an expression.
    pub(crate) fn bind(&mut self, expr: &tree::Expr, scope: &dyn Scope) -> Result<Typed> {
        if let Some(session) = self.session {
            session.check_cancel()?;
        }
        self.deeper(LEVEL, |binder| binder.node(expr, scope))
    }

    /// Goes deeper for the time of `bind`.
    fn deeper<T>(&mut self, cost: usize, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth + cost > DEPTH {
            return Err(too_complex());
        }
        self.depth += cost;
        let bound = bind(self);
        self.depth -= cost;
        bound
    }

    fn node(&mut self, expr: &tree::Expr, scope: &dyn Scope) -> Result<Typed> {
        let at = expr.location;
        match &expr.node {
            Node::ColumnRef(fields) => self.column_ref(fields, at, scope),
            Node::ParamRef(number) => {
                self.param(*number).map_err(|error| self.source.place(error, at))
            }
            Node::AConst(value) => {
                self.literal(value).map_err(|error| self.source.place(error, at))
            }
            Node::AExpr(e) => self.a_expr(expr, e, scope),
            Node::BoolExpr(BoolExprType::Not, args) => self.not(args, scope),
            Node::BoolExpr(op, args) => self.logic(*op == BoolExprType::And, args, scope),
            Node::NullTest(test, arg) => {
                self.is_null(arg, *test == tree::NullTestType::IsNotNull, scope)
            }
            Node::BooleanTest(test, arg) => self.is_bool(arg, *test, scope),
            Node::FuncCall(call) => self.function(call, at, scope),
            Node::AIndirection(arg, parts) => self.indirection(arg, parts, scope),
            Node::AArrayExpr(elements) => self.array(elements, None, at, scope),
            Node::TypeCast(cast) => self.cast(cast, at, scope),
            Node::CollateClause(arg, collation) => {
                check_collation(collation).map_err(|error| self.source.place(error, at))?;
                self.bind(arg, scope)
            }
            Node::CaseExpr(case) => self.case(case, scope),
            Node::CoalesceExpr(args) => self.coalesce(args, scope),
            Node::MinMaxExpr(op, args) => self.min_max(*op, args, scope),
            Node::SubLink(link) => self.sub_link(link, at, scope),
            Node::RowExpr(parts, _) => self.row(parts, scope),
            Node::GroupingFunc(args) => scope.grouping(self, args, at),
            Node::SqlValueFunction(op, precision) => self.value_function(*op, *precision),
            Node::SetToDefault => {
                let what = "DEFAULT is not allowed in this context";
                Err(self.source.place(SqlError::new(SqlState::SYNTAX_ERROR, what), at))
            }
            Node::XmlExpr(_) | Node::XmlSerialize(_) => Err(beyond("XML")),
            Node::NamedArgExpr(..) => Err(beyond("an argument by name")),
            Node::GroupingSet(..) => Err(beyond("a grouping set within an expression")),
            Node::CurrentOfExpr(_) => Err(beyond("WHERE CURRENT OF")),
        }
    }

    /// An operator, or what is written like one.
    fn a_expr(&mut self, expr: &tree::Expr, e: &AExpr, scope: &dyn Scope) -> Result<Typed> {
        use AExprKind as K;
        let at = expr.location;
        match (e.kind, &e.lexpr, &e.rexpr) {
            (K::Op, Some(_), Operand::Expr(_)) => self.binary(expr, scope),
            (K::Op, None, Operand::Expr(operand)) => self.unary(&e.name, operand, at, scope),
            (K::OpAny | K::OpAll, Some(left), Operand::Expr(array)) => {
                self.any_array(left, &e.name, array, e.kind == K::OpAll, at, scope)
            }
            (K::Distinct | K::NotDistinct, Some(left), Operand::Expr(right)) => {
                self.distinct(left, right, e.kind == K::NotDistinct, at, scope)
            }
            (K::NullIf, Some(left), Operand::Expr(right)) => self.null_if(left, right, at, scope),
            (K::In, Some(left), Operand::List(list)) => {
                self.in_list(left, list, has_name(e, "<>"), at, scope)
            }
            (K::Like | K::ILike, Some(left), Operand::Expr(pattern)) => {
                self.like(e, left, pattern, at, scope)
            }
            (K::Similar, Some(left), Operand::Expr(pattern)) => {
                let (value, pattern) = (self.bind(left, scope)?, self.bind(pattern, scope)?);
                let symbol = if has_name(e, "!~") { "!~" } else { "~" };
                let matches = self.binary_operator(symbol, value, pattern);
                matches.map_err(|error| self.source.place(error, at))
            }
            (_, Some(value), Operand::List(bounds)) => {
                self.between(e.kind, value, bounds, at, scope)
            }
            _ => Err(SqlError::internal("an operator without its operands")),
        }
    }

    fn cast(&mut self, cast: &TypeCast, at: u32, scope: &dyn Scope) -> Result<Typed> {
        let TypeCast { arg, type_name } = cast;
        if let Some(value) = self.catalog_cast(arg, type_name, scope)? {
            return Ok(value);
        }
        let placed = |error| self.source.place(error, type_name.location);
        let ty = match data_type(type_name) {
            Err(error) if error.sqlstate == SqlState::UNDEFINED_OBJECT => {
                let fields = self.row_type(type_name, scope).map_err(placed)?;
                let Some(fields) = fields else { return Err(placed(error)) };
                let value = self.row_cast(arg, &type_name.names, fields, scope);
                return value.map_err(|error| self.source.place(error, at));
            }
            ty => ty.map_err(placed)?,
        };
        if let (Node::AArrayExpr(elements), Some(_)) = (&arg.node, ty.element()) {
            let typed = self.array(elements, Some(ty), arg.location, scope)?;
            return Ok(Typed::known(self.coerce(typed, ty, Coercion::Explicit)?, ty));
        }
        let typed = self.bind(arg, scope)?;
        let value = self.coerce(typed, ty, Coercion::Explicit).map_err(|error| {
            let error = self.place_literal(error, &[arg]);
            match error.sqlstate {
                SqlState::CANNOT_COERCE => self.source.place(error, at),
                _ => error,
            }
        })?;
        Ok(Typed::known(value, ty))
    }

    /// Binds an expression and converts it to a type.
    pub fn bind_as(
        &mut self,
        expr: &tree::Expr,
        ty: DataType,
        coercion: Coercion,
        scope: &dyn Scope,
    ) -> Result<Expr> {
        let typed = self.bind(expr, scope)?;
        self.coerce(typed, ty, coercion).map_err(|error| self.place_literal(error, &[expr]))
    }

    /// Binds a condition.
    pub(crate) fn condition(
        &mut self,
        expr: &tree::Expr,
        what: &str,
        scope: &dyn Scope,
    ) -> Result<Expr> {
        let typed = self.bind(expr, scope)?;
        self.truth_value(typed, what).map_err(|error| self.place_at(error, expr))
    }

    fn truth_value(&mut self, typed: Typed, what: &str) -> Result<Expr> {
        match typed.ty {
            Ty::Known(DataType::Bool) | Ty::Unknown => {
                self.coerce(typed, DataType::Bool, Coercion::Implicit)
            }
            Ty::Known(ty) => Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("argument of {what} must be type boolean, not type {ty}"),
            )),
        }
    }

    /// Binds an expression whose own type will do; unknown literals become text.
    pub(crate) fn output(
        &mut self,
        expr: &tree::Expr,
        scope: &dyn Scope,
    ) -> Result<(Expr, DataType)> {
        let typed = self.bind(expr, scope)?;
        self.settled(typed)
    }

    /// A value in a type of its own; an unknown literal becomes text.
    pub(crate) fn settled(&mut self, typed: Typed) -> Result<(Expr, DataType)> {
        match typed.ty {
            Ty::Known(ty) => Ok((typed.expr, ty)),
            Ty::Unknown => {
                Ok((self.coerce(typed, DataType::Text, Coercion::Implicit)?, DataType::Text))
            }
        }
    }
}

/// What has no place in a plan of one table, or is missing. The planner recognises the code, and
/// tries a tree of nodes.
pub(crate) fn beyond(what: &str) -> SqlError {
    SqlError::unsupported(what)
}

/// Whether an operator has this name.
fn has_name(e: &AExpr, name: &str) -> bool {
    e.name.last().is_some_and(|own| **own == *name)
}
