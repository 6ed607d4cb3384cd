//! Queries.

use super::{Alias, Expr, Indirection, Name, RangeVar, Statement, TypeName, WindowDef};

/// A query: what it computes, and the clauses that apply to all of it.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectStmt {
    pub with_clause: Option<WithClause>,
    pub body: SelectBody,
    pub sort_clause: Vec<SortBy>,
    pub limit_offset: Option<Expr>,
    pub limit_count: Option<LimitCount>,
    pub locking_clause: Vec<LockingClause>,
    pub location: u32,
}

/// What a query computes.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectBody {
    /// SELECT, and TABLE, which is `SELECT * FROM`.
    Select(Box<SimpleSelect>),
    Values(Vec<Vec<Expr>>),
    SetOp {
        op: SetOperation,
        all: bool,
        larg: Box<SelectStmt>,
        rarg: Box<SelectStmt>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperation {
    Union,
    Intersect,
    Except,
}

/// SELECT and its clauses.
#[derive(Clone, Debug, PartialEq)]
pub struct SimpleSelect {
    pub distinct_clause: Distinct,
    pub target_list: Vec<ResTarget>,
    pub into_clause: Option<IntoClause>,
    pub from_clause: Vec<TableRef>,
    pub where_clause: Option<Expr>,
    pub group_clause: Vec<Expr>,
    /// GROUP BY DISTINCT
    pub group_distinct: bool,
    pub having_clause: Option<Expr>,
    pub window_clause: Vec<WindowDef>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Distinct {
    All,
    Distinct,
    On(Vec<Expr>),
}

/// An entry of a list of targets: of SELECT and RETURNING a value with a name; of INSERT's columns
/// a name; of UPDATE's SET both.
#[derive(Clone, Debug, PartialEq)]
pub struct ResTarget {
    pub name: Option<Name>,
    pub indirection: Vec<Indirection>,
    pub val: Option<Expr>,
    pub location: u32,
}

/// Where SELECT INTO and CREATE TABLE AS put the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct IntoClause {
    pub rel: RangeVar,
    pub col_names: Vec<Name>,
    pub access_method: Option<Name>,
    pub options: Vec<super::DefElem>,
    pub on_commit: Option<super::OnCommitAction>,
    pub table_space_name: Option<Name>,
    /// WITH NO DATA
    pub skip_data: bool,
}

/// An entry of FROM.
#[derive(Clone, Debug, PartialEq)]
pub enum TableRef {
    RangeVar(RangeVar),
    TableSample(Box<RangeTableSample>),
    Function(Box<RangeFunction>),
    TableFunc(Box<RangeTableFunc>),
    Subselect(Box<RangeSubselect>),
    Join(Box<JoinExpr>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct RangeTableSample {
    pub relation: RangeVar,
    pub method: Vec<Name>,
    pub args: Vec<Expr>,
    pub repeatable: Option<Expr>,
    pub location: u32,
}

/// Functions as a table.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeFunction {
    pub lateral: bool,
    pub ordinality: bool,
    pub is_rowsfrom: bool,
    /// Each with the columns that stand behind it in ROWS FROM.
    pub functions: Vec<(Expr, Vec<ColumnDefinition>)>,
    pub alias: Option<Alias>,
    pub coldeflist: Vec<ColumnDefinition>,
    pub location: u32,
}

/// A column that a function's result has: AS (name type).
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    pub colname: Name,
    pub type_name: TypeName,
    pub coll_clause: Option<Vec<Name>>,
    pub location: u32,
}

/// XMLTABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeTableFunc {
    pub lateral: bool,
    pub docexpr: Expr,
    pub rowexpr: Expr,
    pub namespaces: Vec<ResTarget>,
    pub columns: Vec<RangeTableFuncCol>,
    pub alias: Option<Alias>,
    pub location: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RangeTableFuncCol {
    pub colname: Name,
    /// None for FOR ORDINALITY.
    pub type_name: Option<TypeName>,
    pub is_not_null: bool,
    pub colexpr: Option<Expr>,
    pub coldefexpr: Option<Expr>,
    pub location: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RangeSubselect {
    pub lateral: bool,
    pub subquery: SelectStmt,
    pub alias: Option<Alias>,
    pub location: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct JoinExpr {
    pub jointype: JoinType,
    pub is_natural: bool,
    pub larg: TableRef,
    pub rarg: TableRef,
    pub using_clause: Vec<Name>,
    pub join_using_alias: Option<Name>,
    pub quals: Option<Expr>,
    pub alias: Option<Alias>,
    pub location: u32,
}

/// CROSS JOIN is `Inner` without a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinType {
    Inner,
    Left,
    Full,
    Right,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SortBy {
    pub node: Expr,
    pub sortby_dir: SortByDir,
    pub sortby_nulls: SortByNulls,
    pub location: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SortByDir {
    Default,
    Asc,
    Desc,
    Using(Vec<Name>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortByNulls {
    Default,
    First,
    Last,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LimitCount {
    /// None is ALL.
    pub count: Option<Expr>,
    pub with_ties: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LockingClause {
    pub locked_rels: Vec<RangeVar>,
    pub strength: LockStrength,
    pub wait_policy: LockWaitPolicy,
    pub location: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockStrength {
    ForKeyShare,
    ForShare,
    ForNoKeyUpdate,
    ForUpdate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWaitPolicy {
    Block,
    Skip,
    Error,
}

#[derive(Clone, Debug, PartialEq)]
pub struct WithClause {
    pub ctes: Vec<CommonTableExpr>,
    pub recursive: bool,
    pub location: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CommonTableExpr {
    pub ctename: Name,
    pub aliascolnames: Vec<Name>,
    /// None if neither MATERIALIZED nor NOT MATERIALIZED is written.
    pub materialized: Option<bool>,
    /// SELECT, INSERT, UPDATE or DELETE.
    pub ctequery: Statement,
    pub search_clause: Option<CteSearchClause>,
    pub cycle_clause: Option<CteCycleClause>,
    pub location: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CteSearchClause {
    pub search_col_list: Vec<Name>,
    pub search_breadth_first: bool,
    pub search_seq_column: Name,
    pub location: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CteCycleClause {
    pub cycle_col_list: Vec<Name>,
    pub cycle_mark_column: Name,
    pub cycle_mark_value: Expr,
    pub cycle_mark_default: Expr,
    pub cycle_path_column: Name,
    pub location: u32,
}
