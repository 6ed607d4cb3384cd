//! Whether an outer join has a row of an item: this decides whether its whole row is NULL.
//!
//! A column that is never NULL in a row tells. Where an item has none, it becomes a subquery that
//! adds one.

use super::Analyzer;
use super::level::Level;
use super::namespace::Visible;
use super::query::plain;
use super::tree::{Body, FromItem, Query, Select, Slot, column};
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::query::node::SlotKind;
use crate::sink::ColumnDesc;
use crate::{DataType, Value};

/// An item that gets a further column, and the columns that it has.
pub(super) type Marked = (Slot, Vec<ColumnDesc>);

impl Level<'_> {
    /// What is NULL where there is no row of an item. A join with a name always has one, of NULLs
    /// if need be.
    pub(super) fn presence(&self, item: &Visible) -> Expr {
        let present = || Expr::Const(Value::Bool(true));
        let Some(slot) = item.slot.filter(|_| item.is_nullable) else { return present() };
        if let Some(SlotKind::Stored(table)) = self.analyzer.slots.borrow().get(slot.index())
            && let Some(place) = table.columns.iter().position(|column| column.not_null)
        {
            return Expr::Column(column(slot, place));
        }
        let mut marked = self.marked.borrow_mut();
        if marked.iter().all(|(other, _)| *other != slot) {
            marked.push((slot, item.columns.iter().map(|own| own.desc.clone()).collect()));
        }
        Expr::Column(column(slot, item.columns.len()))
    }
}

impl Analyzer<'_> {
    /// Gives the marked items of a query their further column. To be called when all of the query
    /// is bound, and its locks are known.
    pub(super) fn mark_rows(&self, query: &mut Query, marked: &[Marked]) -> Result<()> {
        if let (Body::Select(select), false) = (&mut query.body, marked.is_empty()) {
            select.from.iter_mut().try_for_each(|item| self.mark(item, marked))?;
        }
        Ok(())
    }

    fn mark(&self, item: &mut FromItem, marked: &[Marked]) -> Result<()> {
        if let FromItem::Join(join) = item {
            self.mark(&mut join.left, marked)?;
            return self.mark(&mut join.right, marked);
        }
        let Some((own, alias)) = item.slot_and_alias() else { return Ok(()) };
        let Some((slot, columns)) = marked.iter().find(|(slot, _)| slot == own) else {
            return Ok(());
        };
        let (slot, alias) = (*slot, alias.clone());
        let inner = self.copied_slot(slot)?;
        *own = inner;
        self.set_width(slot, columns.len() + 1);
        let values = (0..columns.len()).map(|place| Expr::Column(column(inner, place)));
        let targets = values.chain([Expr::Const(Value::Bool(true))]).collect();
        let mut columns = columns.clone();
        columns.push(ColumnDesc::computed("present", DataType::Bool));
        // What stands here until it is the subquery's item.
        let nothing = FromItem::Functions {
            slot,
            functions: Vec::new(),
            with_ordinality: false,
            alias: String::new(),
        };
        let select = Select::of(vec![std::mem::replace(item, nothing)], targets);
        let query = Box::new(plain(Body::Select(Box::new(select)), columns));
        *item = FromItem::Subquery { slot, query, alias };
        Ok(())
    }
}
