//! Expressions.

use super::{Name, SelectStmt, SortBy, Text, TypeName};

/// An expression, and where its operator or its first token is.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub node: Node,
    pub location: u32,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    ColumnRef(Vec<Field>),
    ParamRef(i32),
    AConst(Value),
    AExpr(Box<AExpr>),
    BoolExpr(BoolExprType, Vec<Expr>),
    NullTest(NullTestType, Box<Expr>),
    BooleanTest(BoolTestType, Box<Expr>),
    FuncCall(Box<FuncCall>),
    AIndirection(Box<Expr>, Vec<Indirection>),
    AArrayExpr(Vec<Expr>),
    TypeCast(Box<TypeCast>),
    CollateClause(Box<Expr>, Vec<Name>),
    CaseExpr(Box<CaseExpr>),
    CoalesceExpr(Vec<Expr>),
    MinMaxExpr(MinMaxOp, Vec<Expr>),
    SubLink(Box<SubLink>),
    RowExpr(Vec<Expr>, CoercionForm),
    GroupingFunc(Vec<Expr>),
    /// With the precision in parentheses.
    SqlValueFunction(SqlValueFunctionOp, Option<i32>),
    XmlExpr(Box<XmlExpr>),
    XmlSerialize(Box<XmlSerialize>),
    SetToDefault,
    /// `name => arg`, as an argument only.
    NamedArgExpr(Name, Box<Expr>),
    /// Of GROUP BY only.
    GroupingSet(GroupingSetKind, Vec<Expr>),
    /// WHERE CURRENT OF
    CurrentOfExpr(Name),
}

/// A constant as it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Boolean(bool),
    Integer(i32),
    /// A number that does not fit into an integer, as text.
    Float(Text),
    String(Text),
    /// `b` or `x`, and the digits.
    BitString(Text),
}

/// A part of a column's name.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    String(Name),
    Star,
}

/// What selects a part of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Indirection {
    Field(Name),
    Star,
    Index(Expr),
    Slice(Option<Expr>, Option<Expr>),
}

/// An operator and its operands.
#[derive(Clone, Debug, PartialEq)]
pub struct AExpr {
    pub kind: AExprKind,
    /// The operator: its name last.
    pub name: Vec<Name>,
    pub lexpr: Option<Expr>,
    pub rexpr: Operand,
}

/// The right side of an operator.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    Expr(Expr),
    /// Of IN and BETWEEN.
    List(Vec<Expr>),
}

/// What an operator means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AExprKind {
    Op,
    OpAny,
    OpAll,
    Distinct,
    NotDistinct,
    NullIf,
    In,
    Like,
    ILike,
    Similar,
    Between,
    NotBetween,
    BetweenSym,
    NotBetweenSym,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoolExprType {
    And,
    Or,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullTestType {
    IsNull,
    IsNotNull,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoolTestType {
    IsTrue,
    IsNotTrue,
    IsFalse,
    IsNotFalse,
    IsUnknown,
    IsNotUnknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinMaxOp {
    Greatest,
    Least,
}

/// How a call or a row is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoercionForm {
    /// `f(...)`, `ROW(...)`
    ExplicitCall,
    /// With syntax of its own: `EXTRACT(... FROM ...)`
    SqlSyntax,
    /// `(a, b)`
    ImplicitCast,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupingSetKind {
    Empty,
    Rollup,
    Cube,
    Sets,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlValueFunctionOp {
    CurrentDate,
    CurrentTime,
    CurrentTimestamp,
    LocalTime,
    LocalTimestamp,
    CurrentRole,
    CurrentUser,
    User,
    SessionUser,
    CurrentCatalog,
    CurrentSchema,
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct FuncCall {
    pub funcname: Vec<Name>,
    pub args: Vec<Expr>,
    pub agg_order: Vec<SortBy>,
    pub agg_filter: Option<Expr>,
    pub over: Option<WindowDef>,
    pub agg_within_group: bool,
    pub agg_star: bool,
    pub agg_distinct: bool,
    pub func_variadic: bool,
    pub funcformat: CoercionForm,
}

impl FuncCall {
    /// A call with nothing but arguments.
    pub fn new(funcname: Vec<Name>, args: Vec<Expr>, funcformat: CoercionForm) -> Self {
        Self {
            funcname,
            args,
            agg_order: Vec::new(),
            agg_filter: None,
            over: None,
            agg_within_group: false,
            agg_star: false,
            agg_distinct: false,
            func_variadic: false,
            funcformat,
        }
    }
}

/// A window: of a call, or named in WINDOW.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowDef {
    /// Its own name in WINDOW; the window that OVER names.
    pub name: Option<Name>,
    /// The window that it extends.
    pub refname: Option<Name>,
    pub partition_clause: Vec<Expr>,
    pub order_clause: Vec<SortBy>,
    pub frame: Option<Frame>,
    pub location: u32,
}

/// A frame that is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub mode: FrameMode,
    pub start: FrameBound,
    /// None without BETWEEN: to the current row.
    pub end: Option<FrameBound>,
    pub exclusion: FrameExclusion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameMode {
    Range,
    Rows,
    Groups,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound {
    UnboundedPreceding,
    OffsetPreceding(Expr),
    CurrentRow,
    OffsetFollowing(Expr),
    UnboundedFollowing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameExclusion {
    NoOthers,
    CurrentRow,
    Group,
    Ties,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TypeCast {
    pub arg: Expr,
    pub type_name: TypeName,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CaseExpr {
    pub arg: Option<Expr>,
    pub args: Vec<CaseWhen>,
    pub defresult: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CaseWhen {
    pub expr: Expr,
    pub result: Expr,
    pub location: u32,
}

/// A subquery in an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct SubLink {
    pub sub_link_type: SubLinkType,
    pub testexpr: Option<Expr>,
    /// Of ANY and ALL; empty is IN's equality.
    pub oper_name: Vec<Name>,
    pub subselect: SelectStmt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubLinkType {
    Exists,
    All,
    Any,
    Expr,
    Array,
}

#[derive(Clone, Debug, PartialEq)]
pub struct XmlExpr {
    pub op: XmlExprOp,
    pub name: Option<Name>,
    /// The attributes of XMLELEMENT, the elements of XMLFOREST.
    pub named_args: Vec<super::ResTarget>,
    pub args: Vec<Expr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XmlExprOp {
    Concat,
    Element,
    Forest,
    /// With DOCUMENT, and PRESERVE WHITESPACE.
    Parse {
        document: bool,
        preserve_whitespace: bool,
    },
    Pi,
    Root(Option<XmlStandalone>),
    Document,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XmlStandalone {
    Yes,
    No,
    NoValue,
}

#[derive(Clone, Debug, PartialEq)]
pub struct XmlSerialize {
    /// DOCUMENT, not CONTENT.
    pub document: bool,
    pub expr: Expr,
    pub type_name: TypeName,
}
