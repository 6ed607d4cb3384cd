//! Statements that neither query nor define.

use super::{DefElem, Expr, Name, RangeVar, RawStmt, SelectStmt, Text, TypeName};

#[derive(Clone, Debug, PartialEq)]
pub struct ExplainStmt {
    pub query: RawStmt,
    pub options: Vec<DefElem>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CopyStmt {
    pub source: CopySource,
    /// FROM, not TO.
    pub is_from: bool,
    /// PROGRAM, not a file.
    pub is_program: bool,
    /// None is STDIN or STDOUT.
    pub filename: Option<Text>,
    pub options: Vec<DefElem>,
    pub where_clause: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CopySource {
    Relation {
        relation: RangeVar,
        attlist: Vec<Name>,
    },
    /// SELECT, INSERT, UPDATE or DELETE.
    Query(RawStmt),
}

#[derive(Clone, Debug, PartialEq)]
pub struct PrepareStmt {
    pub name: Name,
    pub argtypes: Vec<TypeName>,
    pub query: RawStmt,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ExecuteStmt {
    pub name: Name,
    pub params: Vec<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DeclareCursorStmt {
    pub portalname: Name,
    pub binary: bool,
    /// None if neither SCROLL nor NO SCROLL is written.
    pub scroll: Option<bool>,
    /// None if neither INSENSITIVE nor ASENSITIVE is written.
    pub insensitive: Option<bool>,
    /// WITH HOLD
    pub hold: bool,
    pub query: SelectStmt,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FetchStmt {
    pub direction: FetchDirection,
    /// i64::MAX is ALL.
    pub how_many: i64,
    pub portalname: Name,
    pub ismove: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchDirection {
    Forward,
    Backward,
    Absolute,
    Relative,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TransactionStmt {
    pub kind: TransactionStmtKind,
    /// Modes of BEGIN and START.
    pub options: Vec<DefElem>,
    /// AND CHAIN
    pub chain: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TransactionStmtKind {
    Begin,
    Start,
    Commit,
    Rollback,
    Savepoint(Name),
    Release(Name),
    RollbackTo(Name),
    Prepare(Text),
    CommitPrepared(Text),
    RollbackPrepared(Text),
}

#[derive(Clone, Debug, PartialEq)]
pub struct VariableSetStmt {
    pub kind: VariableSetKind,
    /// Of `Multi`: TRANSACTION, SESSION CHARACTERISTICS or TRANSACTION SNAPSHOT.
    pub name: Name,
    pub args: Vec<VariableValue>,
    /// Of `Multi`: modes of a transaction.
    pub options: Vec<DefElem>,
    pub is_local: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableSetKind {
    Value,
    Default,
    Current,
    Multi,
    Reset,
    ResetAll,
}

/// A value of SET.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableValue {
    Const(super::Value),
    /// Of SET TIME ZONE INTERVAL: the string and its fields.
    Interval(Text, TypeName),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ReindexStmt {
    pub object: ReindexObject,
    /// CONCURRENTLY
    pub concurrent: bool,
    pub options: Vec<DefElem>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ReindexObject {
    Index(RangeVar),
    Table(RangeVar),
    Schema(Name),
    System(Name),
    Database(Name),
}

#[derive(Clone, Debug, PartialEq)]
pub struct LockStmt {
    pub relations: Vec<RangeVar>,
    pub mode: LockMode,
    pub nowait: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TruncateStmt {
    pub relations: Vec<RangeVar>,
    pub restart_seqs: bool,
    pub behavior: DropBehavior,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropBehavior {
    Restrict,
    Cascade,
}

/// VACUUM and ANALYZE.
#[derive(Clone, Debug, PartialEq)]
pub struct VacuumStmt {
    pub options: Vec<DefElem>,
    pub rels: Vec<(RangeVar, Vec<Name>)>,
    pub is_vacuumcmd: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscardMode {
    All,
    Plans,
    Sequences,
    Temp,
}
