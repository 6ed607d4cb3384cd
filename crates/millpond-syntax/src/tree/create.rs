//! Definitions of relations, and their end.

use super::{
    DefElem, DropBehavior, Expr, IntoClause, Name, QualifiedName, RangeVar, SelectStmt, SortByDir,
    SortByNulls, Statement, TypeName,
};

#[derive(Clone, Debug, PartialEq)]
pub struct CreateStmt {
    pub relation: RangeVar,
    pub table_elts: Vec<TableElement>,
    pub inh_relations: Vec<RangeVar>,
    /// Of PARTITION OF.
    pub partbound: Option<PartitionBoundSpec>,
    pub partspec: Option<PartitionSpec>,
    pub of_typename: Option<QualifiedName>,
    pub options: Vec<DefElem>,
    pub oncommit: Option<OnCommitAction>,
    pub tablespacename: Option<Name>,
    pub access_method: Option<Name>,
    pub if_not_exists: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCommitAction {
    PreserveRows,
    DeleteRows,
    Drop,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TableElement {
    Column(Box<ColumnDef>),
    Like(Box<TableLikeClause>),
    Constraint(Box<Constraint>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    pub colname: Name,
    /// None in a table of a type or a partition.
    pub type_name: Option<TypeName>,
    pub compression: Option<Name>,
    pub fdwoptions: Vec<DefElem>,
    pub coll_clause: Option<QualifiedName>,
    pub constraints: Vec<Constraint>,
    pub location: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TableLikeClause {
    pub relation: RangeVar,
    /// In their order: what, and whether INCLUDING or EXCLUDING.
    pub options: Vec<(TableLikeOption, bool)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableLikeOption {
    Comments,
    Compression,
    Constraints,
    Defaults,
    Generated,
    Identity,
    Indexes,
    Statistics,
    Storage,
    All,
}

/// A constraint, or one of the attributes of one that stand behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    pub conname: Option<Name>,
    pub contype: ConstrType,
    pub deferrable: bool,
    pub initdeferred: bool,
    pub skip_validation: bool,
    pub is_no_inherit: bool,
    pub location: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ConstrType {
    Null,
    NotNull,
    /// With the bytes of the text that it is.
    Default(Expr, std::ops::Range<u32>),
    Identity {
        always: bool,
        options: Vec<DefElem>,
    },
    Generated(Expr),
    Check(Expr),
    Primary(KeyConstraint),
    Unique {
        nulls_not_distinct: bool,
        key: KeyConstraint,
    },
    Exclusion(Box<ExclusionConstraint>),
    Foreign(Box<ForeignConstraint>),
    // The attributes of the constraint in front of them, behind a column.
    AttrDeferrable,
    AttrNotDeferrable,
    AttrDeferred,
    AttrImmediate,
}

/// PRIMARY KEY and UNIQUE.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyConstraint {
    /// Empty behind a column.
    pub keys: Vec<Name>,
    pub including: Vec<Name>,
    pub options: Vec<DefElem>,
    pub indexname: Option<Name>,
    pub indexspace: Option<Name>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ExclusionConstraint {
    pub access_method: Option<Name>,
    pub exclusions: Vec<(IndexElem, Vec<Name>)>,
    pub key: KeyConstraint,
    pub where_clause: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ForeignConstraint {
    /// Empty behind a column.
    pub fk_attrs: Vec<Name>,
    pub pktable: RangeVar,
    pub pk_attrs: Vec<Name>,
    pub fk_matchtype: FkMatchType,
    pub fk_upd_action: FkAction,
    pub fk_del_action: FkAction,
    pub fk_del_set_cols: Vec<Name>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FkMatchType {
    Full,
    Simple,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FkAction {
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PartitionSpec {
    pub strategy: Name,
    pub part_params: Vec<IndexElem>,
    pub location: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PartitionBoundSpec {
    Default,
    Hash { modulus: i32, remainder: i32 },
    List(Vec<Expr>),
    Range { lowerdatums: Vec<Expr>, upperdatums: Vec<Expr> },
}

#[derive(Clone, Debug, PartialEq)]
pub struct IndexStmt {
    pub idxname: Option<Name>,
    pub relation: RangeVar,
    pub access_method: Option<Name>,
    pub table_space: Option<Name>,
    pub index_params: Vec<IndexElem>,
    pub index_including_params: Vec<IndexElem>,
    pub options: Vec<DefElem>,
    pub where_clause: Option<Expr>,
    pub unique: bool,
    pub nulls_not_distinct: bool,
    pub concurrent: bool,
    pub if_not_exists: bool,
}

/// What an index or a partition's key has: a column or an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexElem {
    pub key: IndexKey,
    pub collation: Option<Vec<Name>>,
    pub opclass: Option<Vec<Name>>,
    pub opclassopts: Vec<DefElem>,
    pub ordering: SortByDir,
    pub nulls_ordering: SortByNulls,
    pub location: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum IndexKey {
    Name(Name),
    Expr(Expr),
}

/// CREATE TABLE AS, SELECT INTO's sister, and CREATE MATERIALIZED VIEW.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTableAsStmt {
    /// SELECT or EXECUTE.
    pub query: Statement,
    pub into: IntoClause,
    /// CREATE MATERIALIZED VIEW
    pub matview: bool,
    pub if_not_exists: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ViewStmt {
    pub view: RangeVar,
    pub aliases: Vec<Name>,
    pub query: SelectStmt,
    pub replace: bool,
    pub recursive: bool,
    pub options: Vec<DefElem>,
    pub with_check_option: Option<ViewCheckOption>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewCheckOption {
    Local,
    Cascaded,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateSchemaStmt {
    /// None is the name of the role.
    pub schemaname: Option<Name>,
    pub authrole: Option<RoleSpec>,
    pub schema_elts: Vec<Statement>,
    pub if_not_exists: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RoleSpec {
    Name(Name),
    CurrentRole,
    CurrentUser,
    SessionUser,
    Public,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateSeqStmt {
    pub sequence: RangeVar,
    pub options: Vec<DefElem>,
    pub if_not_exists: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AlterTableStmt {
    pub relation: RangeVar,
    pub missing_ok: bool,
    /// Up to the first that has no tree.
    pub cmds: Vec<AlterTableCmd>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AlterTableCmd {
    AddConstraint(Box<Constraint>),
    DropConstraint {
        name: Name,
        behavior: DropBehavior,
        missing_ok: bool,
    },
    /// A change that has no tree yet: the words that it begins with.
    Other(String),
}

/// DROP of what a name alone identifies.
#[derive(Clone, Debug, PartialEq)]
pub struct DropStmt {
    pub remove_type: ObjectType,
    pub objects: Vec<QualifiedName>,
    pub behavior: DropBehavior,
    pub missing_ok: bool,
    pub concurrent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectType {
    Table,
    Sequence,
    View,
    MatView,
    Index,
    ForeignTable,
    Collation,
    Conversion,
    StatisticExt,
    Schema,
    Type,
    Domain,
}
