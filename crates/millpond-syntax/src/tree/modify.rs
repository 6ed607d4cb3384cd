//! Statements that change rows.

use super::{Expr, Name, RangeVar, ResTarget, SelectStmt, TableRef, WithClause};

#[derive(Clone, Debug, PartialEq)]
pub struct InsertStmt {
    pub with_clause: Option<WithClause>,
    pub relation: RangeVar,
    pub cols: Vec<ResTarget>,
    pub overriding: Overriding,
    /// None is DEFAULT VALUES.
    pub select_stmt: Option<SelectStmt>,
    pub on_conflict_clause: Option<OnConflictClause>,
    pub returning_list: Vec<ResTarget>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overriding {
    NotSet,
    UserValue,
    SystemValue,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OnConflictClause {
    pub infer: Option<InferClause>,
    pub action: OnConflictAction,
    pub location: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum OnConflictAction {
    Nothing,
    Update { target_list: Vec<SetClause>, where_clause: Option<Expr> },
}

/// What ON CONFLICT names.
#[derive(Clone, Debug, PartialEq)]
pub struct InferClause {
    pub index_elems: Vec<super::IndexElem>,
    pub where_clause: Option<Expr>,
    pub conname: Option<Name>,
    pub location: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct UpdateStmt {
    pub with_clause: Option<WithClause>,
    pub relation: RangeVar,
    pub target_list: Vec<SetClause>,
    pub from_clause: Vec<TableRef>,
    pub where_clause: Option<Expr>,
    pub returning_list: Vec<ResTarget>,
}

/// An entry of SET.
#[derive(Clone, Debug, PartialEq)]
pub enum SetClause {
    /// `column = value`
    One(ResTarget),
    /// `(column, ...) = source`
    Multi { targets: Vec<ResTarget>, source: Expr },
}

#[derive(Clone, Debug, PartialEq)]
pub struct DeleteStmt {
    pub with_clause: Option<WithClause>,
    pub relation: RangeVar,
    pub using_clause: Vec<TableRef>,
    pub where_clause: Option<Expr>,
    pub returning_list: Vec<ResTarget>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MergeStmt {
    pub with_clause: Option<WithClause>,
    pub relation: RangeVar,
    pub source_relation: TableRef,
    pub join_condition: Expr,
    pub merge_when_clauses: Vec<MergeWhenClause>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MergeWhenClause {
    pub matched: bool,
    pub condition: Option<Expr>,
    pub action: MergeAction,
    pub location: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MergeAction {
    Nothing,
    Delete,
    Update(Vec<SetClause>),
    /// Without values it inserts defaults.
    Insert {
        cols: Vec<ResTarget>,
        overriding: Overriding,
        values: Vec<Expr>,
    },
}
