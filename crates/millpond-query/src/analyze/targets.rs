//! Select lists.

use millpond_syntax::tree::{self, Field, Node, ResTarget};

use super::column_name::column_name;
use super::level::Level;
use super::namespace::{self, Missing, NamedColumn, Visible};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion, Typed, start_of};
use crate::expr::types::Ty;
use crate::parse::Name;
use crate::plan::check_target_count;
use crate::sink::ColumnDesc;

/// A column of a select list.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) expr: Expr,
    /// Unknown only for a literal whose type is up to the query around it.
    pub(super) ty: Ty,
    pub(super) desc: ColumnDesc,
    /// Where in the text it is.
    pub(super) at: Option<u32>,
    /// How many columns had been named before it.
    pub(super) references: usize,
}

impl Target {
    /// An operator with a NULL leaves out its other side.
    pub(super) fn leave_out_null_calls(&mut self) -> Result<()> {
        let e = std::mem::replace(&mut self.expr, Expr::NULL);
        self.expr = e.without_null_calls()?;
        Ok(())
    }

    /// One of a column that is there already.
    pub(super) fn of_column(column: usize, desc: &ColumnDesc) -> Self {
        Target {
            expr: Expr::Column(column),
            ty: Ty::Known(desc.ty),
            desc: desc.clone(),
            at: None,
            references: 0,
        }
    }
}

impl Level<'_> {
    /// Binds a select list.
    pub(super) fn targets(
        &self,
        items: &[ResTarget],
        settle: bool,
        binder: &mut Binder<'_>,
    ) -> Result<Vec<Target>> {
        let mut targets = Vec::with_capacity(items.len());
        for item in items {
            let Some(e) = &item.val else {
                return Err(SqlError::internal("a target without value"));
            };
            match (&e.node, &item.name) {
                // PostgreSQL ignores a name behind a star.
                (Node::ColumnRef(fields), _) if fields.last() == Some(&Field::Star) => {
                    match fields.split_last() {
                        Some((_, [])) => self.star(e.location, &mut targets)?,
                        _ => self.star_of(fields, e.location, &mut targets)?,
                    }
                }
                (Node::AIndirection(record, parts), _)
                    if parts.last() == Some(&tree::Indirection::Star) =>
                {
                    let parts = &parts[..parts.len() - 1];
                    self.fields(record, parts, binder, &mut targets)?;
                }
                (_, name) => {
                    targets.push(self.target(e, name.clone(), settle, binder)?);
                }
            }
            check_target_count(targets.len())?;
        }
        Ok(targets)
    }

    /// `(record).*`
    fn fields(
        &self,
        record: &tree::Expr,
        parts: &[tree::Indirection],
        binder: &mut Binder<'_>,
        targets: &mut Vec<Target>,
    ) -> Result<()> {
        let references = self.collected.borrow().references.len();
        let value = binder.indirection(record, parts, self)?;
        let fields = binder.fields_of(&value).map_err(|error| binder.place_at(error, record))?;
        for (name, Typed { expr, ty }) in fields {
            let known = if let Ty::Known(ty) = ty { ty } else { DataType::Text };
            let mut desc = self.describe(&expr, known);
            desc.name = name.into();
            targets.push(Target { expr, ty, desc, at: Some(start_of(record)), references });
        }
        Ok(())
    }

    fn target(
        &self,
        e: &tree::Expr,
        alias: Option<tree::Name>,
        settle: bool,
        binder: &mut Binder<'_>,
    ) -> Result<Target> {
        let references = self.collected.borrow().references.len();
        let Typed { expr, ty } = binder.bind(e, self)?;
        let (expr, ty) = match ty {
            Ty::Unknown if settle => {
                let text = binder.coerce(Typed { expr, ty }, DataType::Text, Coercion::Implicit)?;
                (text, Ty::Known(DataType::Text))
            }
            ty => (expr, ty),
        };
        let known = match ty {
            Ty::Known(ty) => ty,
            Ty::Unknown => DataType::Text,
        };
        let mut desc = self.describe(&expr, known);
        desc.name = alias.unwrap_or_else(|| column_name(e));
        Ok(Target { expr, ty, desc, at: Some(start_of(e)), references })
    }

    /// A column's description, without a name: a table's column keeps its origin.
    fn describe(&self, expr: &Expr, ty: DataType) -> ColumnDesc {
        let is_it = |column: &&NamedColumn| column.expr == *expr;
        match expr {
            Expr::Column(_) => self
                .chain()
                .find_map(|level| {
                    let items = level.items.borrow();
                    items.iter().flat_map(|item| item.columns.iter()).find(is_it).cloned()
                })
                // A cast may have made text of a `character(n)`.
                .filter(|column| column.desc.ty.base() == ty.base())
                .map_or_else(|| ColumnDesc::computed("", ty), |column| column.desc),
            Expr::Func(func, _) if func.is_void() => ColumnDesc::void(""),
            _ => ColumnDesc::computed("", ty),
        }
    }

    /// `*`
    fn star(&self, at: u32, targets: &mut Vec<Target>) -> Result<()> {
        let visible = self.visible.borrow();
        if !visible.iter().any(|item| item.has_columns) {
            let what = "SELECT * with no tables specified is not valid";
            let error = SqlError::new(SqlState::SYNTAX_ERROR, what);
            return Err(self.analyzer.source.place(error, at));
        }
        for item in visible.iter().filter(|item| item.has_columns) {
            self.spread(item, at, targets);
        }
        Ok(())
    }

    /// `name.*`
    fn star_of(&self, fields: &[Field], at: u32, targets: &mut Vec<Target>) -> Result<()> {
        let name = Name::of_star(fields, at, &self.analyzer.source)?;
        for level in self.chain() {
            match namespace::item(&level.visible.borrow(), &name) {
                Ok(item) => {
                    level.spread(item, at, targets);
                    return Ok(());
                }
                Err(Missing::Nowhere) => {}
                Err(Missing::Failed(error)) => return Err(self.analyzer.source.place(error, at)),
            }
        }
        Err(self.analyzer.source.place(self.missing_item(&name.name), at))
    }

    fn spread(&self, item: &Visible, at: u32, targets: &mut Vec<Target>) {
        for column in item.columns.iter().filter(|column| !column.is_hidden) {
            let references = self.collected.borrow().references.len();
            self.note(&column.expr, at);
            targets.push(Target {
                expr: column.expr.clone(),
                ty: Ty::Known(column.ty()),
                desc: column.desc.clone(),
                at: Some(at),
                references,
            });
        }
    }
}
