//! The syntax tree. Types, fields and variants have the names of PostgreSQL's parse nodes
//! (`nodes/parsenodes.h`), whose documentation applies. A `location` is a byte of the text.

#![expect(missing_docs, reason = "fields and variants have the names of PostgreSQL's nodes")]

mod create;
mod expr;
mod modify;
mod select;
mod utility;

pub use create::*;
pub use expr::*;
pub use modify::*;
pub use select::*;
pub use utility::*;

/// A string. One of up to 23 bytes takes no memory of its own.
pub type Text = smol_str::SmolStr;
/// A name: folded, without quotes, at most 63 bytes.
pub type Name = Text;

/// A statement of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct RawStmt {
    pub stmt: Statement,
    /// Its first byte.
    pub location: u32,
    /// Its length in bytes, without the semicolon.
    pub length: u32,
}

/// What a statement says.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    Select(Box<SelectStmt>),
    Insert(Box<InsertStmt>),
    Update(Box<UpdateStmt>),
    Delete(Box<DeleteStmt>),
    Merge(Box<MergeStmt>),
    Explain(Box<ExplainStmt>),
    Copy(Box<CopyStmt>),
    Prepare(Box<PrepareStmt>),
    Execute(Box<ExecuteStmt>),
    /// DEALLOCATE: of all if there is no name.
    Deallocate(Option<Name>),
    DeclareCursor(Box<DeclareCursorStmt>),
    Fetch(Box<FetchStmt>),
    /// CLOSE: all cursors if there is no name.
    ClosePortal(Option<Name>),
    Transaction(Box<TransactionStmt>),
    VariableSet(Box<VariableSetStmt>),
    /// SHOW. The name is `all` for all.
    VariableShow(Name),
    Lock(Box<LockStmt>),
    Reindex(Box<ReindexStmt>),
    Truncate(Box<TruncateStmt>),
    Vacuum(Box<VacuumStmt>),
    Checkpoint,
    /// DISCARD ALL, PLANS, SEQUENCES, TEMP.
    Discard(DiscardMode),
    Listen(Name),
    /// UNLISTEN: all if there is no name.
    Unlisten(Option<Name>),
    Notify {
        conditionname: Name,
        payload: Option<Text>,
    },
    Create(Box<CreateStmt>),
    CreateTableAs(Box<CreateTableAsStmt>),
    View(Box<ViewStmt>),
    Index(Box<IndexStmt>),
    CreateSchema(Box<CreateSchemaStmt>),
    CreateSeq(Box<CreateSeqStmt>),
    Drop(Box<DropStmt>),
    AlterTable(Box<AlterTableStmt>),
    /// ALTER SYSTEM
    AlterSystem(Box<VariableSetStmt>),
    /// A statement that PostgreSQL's grammar takes and that has no tree yet.
    Other {
        /// PostgreSQL's command tag, like `CREATE FUNCTION`.
        kind: &'static str,
    },
}

/// A relation as a statement names it.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeVar {
    pub catalogname: Option<Name>,
    pub schemaname: Option<Name>,
    pub relname: Name,
    /// Whether relations that inherit from it are meant, too: not after ONLY.
    pub inh: bool,
    pub relpersistence: Persistence,
    pub alias: Option<Alias>,
    pub location: u32,
}

/// How long a relation lives, and how safely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    Permanent,
    Unlogged,
    Temp,
}

/// The name that an entry of FROM goes by.
#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    pub aliasname: Name,
    pub colnames: Vec<Name>,
}

/// A name with any number of qualifiers.
#[derive(Clone, Debug, PartialEq)]
pub struct QualifiedName {
    pub names: Vec<Name>,
    pub location: u32,
}

/// A type as a statement names it. SQL's own spellings (`int`, `character varying`) are resolved to
/// names of `pg_catalog`.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeName {
    pub names: Vec<Name>,
    pub setof: bool,
    /// `%TYPE`
    pub pct_type: bool,
    pub typmods: Vec<Expr>,
    /// One for each pair of brackets: the length that they hold, or -1.
    pub array_bounds: Vec<i32>,
    pub location: u32,
}

/// An option: a name and, at times, a value.
#[derive(Clone, Debug, PartialEq)]
pub struct DefElem {
    pub defnamespace: Option<Name>,
    pub defname: Name,
    pub arg: Option<DefArg>,
    pub location: u32,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
pub enum DefArg {
    Integer(i32),
    Float(Text),
    Boolean(bool),
    /// A string literal, or a keyword as its text.
    String(Text),
    TypeName(TypeName),
    /// An operator with its qualifiers.
    Operator(Vec<Name>),
    Star,
    List(Vec<DefArg>),
    /// NONE, where a type could stand.
    None,
}
