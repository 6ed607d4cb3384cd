//! Names that a query's FROM gives: what an unqualified and a qualified name may mean.

use std::rc::Rc;

use smol_str::SmolStr;

use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::ambiguous_column;
use crate::parse::Name;
use crate::sink::ColumnDesc;

use super::tree::{Slot, column};

/// A column that can be named.
#[derive(Debug, Clone)]
pub(super) struct NamedColumn {
    /// Its value: a column of a slot, or of a join's merged columns the first that is there.
    pub(super) expr: Expr,
    /// Its name, type and origin.
    pub(super) desc: ColumnDesc,
    /// `*` leaves it out: one of SEARCH or CYCLE, within its own query.
    pub(super) is_hidden: bool,
}

impl NamedColumn {
    pub(super) fn new(expr: Expr, desc: ColumnDesc) -> Self {
        NamedColumn { expr, desc, is_hidden: false }
    }

    pub(super) fn ty(&self) -> DataType {
        self.desc.ty
    }
}

/// An item of FROM, or a join, as names see it.
#[derive(Debug, Clone)]
pub(super) struct Visible {
    /// Where its rows are; `None` for a join.
    pub(super) slot: Option<Slot>,
    /// A join has none unless it is given one.
    pub(super) alias: Option<SmolStr>,
    /// What it is called without its alias.
    pub(super) name: Option<SmolStr>,
    /// The schema that may stand in front of its name: of a table or system relation without an
    /// alias.
    pub(super) schema: Option<&'static str>,
    pub(super) columns: Rc<[NamedColumn]>,
    /// Unqualified names are looked for in it, and `*` spreads it. Not so for the sides of a join,
    /// for which the join stands.
    pub(super) has_columns: bool,
    /// It is the left side of a join of a kind of which the right side can't see it.
    pub(super) is_barred: bool,
    /// An outer join may have no row of it.
    pub(super) is_nullable: bool,
    /// It is a function of plain values: its name stands for the value, not for a row.
    pub(super) is_value: bool,
}

/// How a name was not found.
pub(super) enum Missing {
    /// There is no such thing.
    Nowhere,
    Failed(SqlError),
}

impl Visible {
    /// An item with columns of its own.
    pub(super) fn new(
        slot: Slot,
        alias: &str,
        name: Option<&str>,
        columns: impl IntoIterator<Item = ColumnDesc>,
    ) -> Self {
        let columns = columns
            .into_iter()
            .enumerate()
            .map(|(place, desc)| NamedColumn::new(Expr::Column(column(slot, place)), desc))
            .collect();
        let name = name.map(SmolStr::from);
        let all = Visible::of_columns(Some(alias.into()), columns, true);
        Visible { slot: Some(slot), name, ..all }
    }

    /// The same, of whose columns `*` spreads the first ones only.
    pub(super) fn spreading(mut self, first: usize) -> Self {
        let hidden = |(place, column): (usize, &NamedColumn)| NamedColumn {
            is_hidden: place >= first,
            ..column.clone()
        };
        self.columns = self.columns.iter().enumerate().map(hidden).collect();
        self
    }

    /// Columns of other items under a name of their own, if they have one.
    pub(super) fn of_columns(
        alias: Option<SmolStr>,
        columns: Rc<[NamedColumn]>,
        has_columns: bool,
    ) -> Self {
        Visible {
            slot: None,
            alias,
            name: None,
            schema: None,
            columns,
            has_columns,
            is_barred: false,
            is_nullable: false,
            is_value: false,
        }
    }

    /// Whether a name in front of a column's is its.
    pub(super) fn is_called(&self, name: &Name) -> bool {
        self.alias.as_deref() == Some(name.name.as_str())
            && (name.schema.is_none() || name.schema.as_deref() == self.schema)
    }

    /// Its column of that name; two of the name are ambiguous.
    fn column(&self, name: &str) -> std::result::Result<&NamedColumn, Missing> {
        let mut of_name = self.columns.iter().filter(|column| column.desc.name == name);
        match (of_name.next(), of_name.next()) {
            (None, _) => Err(Missing::Nowhere),
            (Some(_), Some(_)) => Err(Missing::Failed(ambiguous_column(name))),
            (Some(_), None) if self.is_barred => {
                Err(Missing::Failed(barred(self.alias.as_deref().unwrap_or("unnamed_join"))))
            }
            (Some(one), None) => Ok(one),
        }
    }
}

/// The column of an unqualified name.
pub(super) fn unqualified<'v>(
    items: &'v [Visible],
    name: &str,
) -> std::result::Result<&'v NamedColumn, Missing> {
    let mut found = None;
    for item in items.iter().filter(|item| item.has_columns) {
        match item.column(name) {
            Ok(_) if found.is_some() => return Err(Missing::Failed(ambiguous_column(name))),
            Ok(column) => found = Some(column),
            Err(Missing::Nowhere) => {}
            Err(failed) => return Err(failed),
        }
    }
    found.ok_or(Missing::Nowhere)
}

/// The item of a name.
pub(super) fn item<'v>(
    items: &'v [Visible],
    name: &Name,
) -> std::result::Result<&'v Visible, Missing> {
    match items.iter().find(|item| item.is_called(name)) {
        Some(item) if item.is_barred => Err(Missing::Failed(barred(&name.name))),
        Some(item) => Ok(item),
        None => Err(Missing::Nowhere),
    }
}

/// The column of a qualified name, if there is an item of that name.
pub(super) fn qualified<'v>(
    items: &'v [Visible],
    table: &Name,
    name: &str,
) -> std::result::Result<&'v NamedColumn, Missing> {
    item(items, table)?.column(name).map_err(|missing| match missing {
        Missing::Nowhere => Missing::Failed(undefined(name, Some(&table.name), items)),
        failed => failed,
    })
}

/// Two items must not have one name.
pub(super) fn check_aliases(left: &[Visible], right: &[Visible]) -> Result<()> {
    for alias in right.iter().filter_map(|item| item.alias.as_deref()) {
        if left.iter().any(|item| item.alias.as_deref() == Some(alias)) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_ALIAS,
                format!("table name \"{alias}\" specified more than once"),
            ));
        }
    }
    Ok(())
}

fn barred(name: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_COLUMN_REFERENCE,
        format!("invalid reference to FROM-clause entry for table \"{name}\""),
    )
    .detail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.")
}

/// "column ... does not exist", with the names that may have been meant.
pub(super) fn undefined(name: &str, table: Option<&str>, items: &[Visible]) -> SqlError {
    let error = SqlError::new(
        SqlState::UNDEFINED_COLUMN,
        match table {
            Some(table) => format!("column {table}.{name} does not exist"),
            None => format!("column \"{name}\" does not exist"),
        },
    );
    let near = nearest(name, table, items);
    match near.as_slice() {
        [one] => error.hint(format!("Perhaps you meant to reference the column \"{one}\".")),
        [one, two] => error.hint(format!(
            "Perhaps you meant to reference the column \"{one}\" or the column \"{two}\"."
        )),
        _ => error,
    }
}

/// The columns whose names are nearest to a name, if they are few.
fn nearest(name: &str, table: Option<&str>, items: &[Visible]) -> Vec<String> {
    const FARTHEST: usize = 3;
    let mut best = FARTHEST + 1;
    let mut found = Vec::new();
    for item in items {
        let Some(alias) = item.alias.as_deref() else { continue };
        let away = table.map_or(0, |table| strsim::levenshtein(table, alias).min(FARTHEST));
        for column in item.columns.iter() {
            let other = column.desc.name.as_str();
            let distance = strsim::levenshtein(name, other);
            if distance > other.chars().count() / 2 || distance + away > best.min(FARTHEST) {
                continue;
            }
            if distance + away < best {
                best = distance + away;
                found.clear();
            }
            found.push(format!("{alias}.{other}"));
        }
    }
    found
}
