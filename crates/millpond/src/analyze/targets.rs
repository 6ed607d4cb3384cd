//! Select lists.

use sqlparser::ast::{self, Spanned};
use sqlparser::tokenizer::Span;

use super::column_name::column_name;
use super::level::Level;
use super::namespace::{self, Missing, NamedColumn, Visible};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion, Typed, beyond};
use crate::expr::types::Ty;
use crate::parse::{Name, ident};
use crate::sink::ColumnDesc;

/// How many columns a result can have.
const MAX_TARGETS: usize = 1664;

/// A column of a select list.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) expr: Expr,
    /// Unknown only for a literal whose type is up to the query around it.
    pub(super) ty: Ty,
    pub(super) desc: ColumnDesc,
    /// Where in the text it is.
    pub(super) span: Span,
    /// How many columns had been named before it.
    pub(super) references: usize,
}

impl Target {
    /// One of a column that is there already.
    pub(super) fn of_column(column: usize, desc: &ColumnDesc) -> Self {
        Target {
            expr: Expr::Column(column),
            ty: Ty::Known(desc.ty),
            desc: desc.clone(),
            span: Span::empty(),
            references: 0,
        }
    }
}

impl Level<'_> {
    /// Binds a select list.
    pub(super) fn targets(
        &self,
        items: &[ast::SelectItem],
        settle: bool,
        binder: &mut Binder<'_>,
    ) -> Result<Vec<Target>> {
        let mut targets = Vec::with_capacity(items.len());
        for item in items {
            match item {
                ast::SelectItem::UnnamedExpr(e) => {
                    targets.push(self.target(e, None, settle, binder)?);
                }
                ast::SelectItem::ExprWithAlias { expr, alias } => {
                    targets.push(self.target(expr, Some(ident(alias)), settle, binder)?);
                }
                ast::SelectItem::Wildcard(options) => {
                    plain_star(options)?;
                    let span = options.wildcard_token.0.span;
                    let visible = self.visible.borrow();
                    if !visible.iter().any(|item| item.has_columns) {
                        let error = SqlError::new(
                            SqlState::SYNTAX_ERROR,
                            "SELECT * with no tables specified is not valid",
                        );
                        return Err(self.analyzer.source.place(error, span));
                    }
                    for item in visible.iter().filter(|item| item.has_columns) {
                        self.spread(item, span, &mut targets);
                    }
                }
                ast::SelectItem::QualifiedWildcard(kind, options) => {
                    plain_star(options)?;
                    let ast::SelectItemQualifiedWildcardKind::ObjectName(name) = kind else {
                        return Err(beyond("the columns of a row value"));
                    };
                    self.star_of(name, &mut targets)?;
                }
                ast::SelectItem::ExprWithAliases { .. } => {
                    return Err(beyond(&format!("the select item {item}")));
                }
            }
            if targets.len() > MAX_TARGETS {
                return Err(SqlError::new(
                    SqlState::TOO_MANY_COLUMNS,
                    "target lists can have at most 1664 entries",
                ));
            }
        }
        Ok(targets)
    }

    fn target(
        &self,
        e: &ast::Expr,
        alias: Option<String>,
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
        Ok(Target { expr, ty, desc, span: span_of(e), references })
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
                .map_or_else(|| ColumnDesc::computed("", ty), |column| column.desc),
            Expr::Func(func, _) if func.is_void() => ColumnDesc::void(""),
            _ => ColumnDesc::computed("", ty),
        }
    }

    /// `name.*`
    fn star_of(&self, name: &ast::ObjectName, targets: &mut Vec<Target>) -> Result<()> {
        let span = name.span();
        let name = Name::from_ast(name, &self.analyzer.source)?;
        for level in self.chain() {
            match namespace::item(&level.visible.borrow(), &name) {
                Ok(item) => {
                    level.spread(item, span, targets);
                    return Ok(());
                }
                Err(Missing::Nowhere) => {}
                Err(Missing::Failed(error)) => return Err(self.analyzer.source.place(error, span)),
            }
        }
        Err(self.analyzer.source.place(self.missing_item(&name.name), span))
    }

    fn spread(&self, item: &Visible, span: Span, targets: &mut Vec<Target>) {
        for column in item.columns.iter() {
            let references = self.collected.borrow().references.len();
            self.note(column, span);
            targets.push(Target {
                expr: column.expr.clone(),
                ty: Ty::Known(column.ty()),
                desc: column.desc.clone(),
                span,
                references,
            });
        }
    }
}

fn plain_star(options: &ast::WildcardAdditionalOptions) -> Result<()> {
    if options.opt_ilike.is_some()
        || options.opt_exclude.is_some()
        || options.opt_except.is_some()
        || options.opt_replace.is_some()
        || options.opt_rename.is_some()
    {
        return Err(beyond("a star with options"));
    }
    Ok(())
}

/// Where an expression begins.
pub(super) fn span_of(e: &ast::Expr) -> Span {
    use ast::Spanned;
    e.span()
}
