//! WITH.

use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::tree::{CommonTableExpr, CteCycleClause, CteSearchClause, Statement, Value, WithClause};

impl Parser<'_> {
    pub(super) fn opt_with_clause(&mut self) -> Parse<Option<WithClause>> {
        if !self.is_keyword(Keyword::With) {
            return Ok(None);
        }
        let location = self.bump().start;
        let recursive = self.is_keyword(Keyword::Recursive)
            && !self.is_keyword_at(1, Keyword::As)
            && !self.is_char_at(1, b'(');
        if recursive {
            self.bump();
        }
        let ctes = self.list(Self::common_table_expr)?;
        Ok(Some(WithClause { ctes, recursive, location }))
    }

    fn common_table_expr(&mut self) -> Parse<CommonTableExpr> {
        let location = self.location();
        let ctename = self.col_id()?;
        let aliascolnames = self.opt_column_list()?;
        self.expect_keyword(Keyword::As)?;
        let materialized = if self.take_keyword(Keyword::Materialized) {
            Some(true)
        } else if self.take_keyword(Keyword::Not) {
            self.expect_keyword(Keyword::Materialized)?;
            Some(false)
        } else {
            None
        };
        self.expect_char(b'(')?;
        if self.is_keyword(Keyword::Merge) {
            self.deeper(Self::preparable)?;
            return Err(self.unsupported("MERGE not supported in WITH query", location));
        }
        let ctequery = self.deeper(Self::preparable)?;
        self.expect_char(b')')?;
        Ok(CommonTableExpr {
            ctename,
            aliascolnames,
            materialized,
            ctequery,
            search_clause: self.opt_search()?,
            cycle_clause: self.opt_cycle()?,
            location,
        })
    }

    /// PreparableStmt.
    pub(super) fn preparable(&mut self) -> Parse<Statement> {
        let with = self.opt_with_clause()?;
        match self.keyword() {
            Some(Keyword::Insert) => self.insert(with),
            Some(Keyword::Update) => self.update(with),
            Some(Keyword::Delete) => self.delete(with),
            Some(Keyword::Merge) => self.merge(with),
            _ => Ok(Statement::Select(Box::new(self.select_after_with(with)?))),
        }
    }

    fn opt_search(&mut self) -> Parse<Option<CteSearchClause>> {
        if !self.is_keyword(Keyword::Search) {
            return Ok(None);
        }
        let location = self.bump().start;
        let breadth = match self.take_one_of(&[Keyword::Breadth, Keyword::Depth]) {
            Some(keyword) => keyword == Keyword::Breadth,
            None => return Err(self.unexpected()),
        };
        self.expect_keywords(&[Keyword::First, Keyword::By])?;
        let search_col_list = self.name_list()?;
        self.expect_keyword(Keyword::Set)?;
        Ok(Some(CteSearchClause {
            search_col_list,
            search_breadth_first: breadth,
            search_seq_column: self.col_id()?,
            location,
        }))
    }

    fn opt_cycle(&mut self) -> Parse<Option<CteCycleClause>> {
        if !self.is_keyword(Keyword::Cycle) {
            return Ok(None);
        }
        let location = self.bump().start;
        let cycle_col_list = self.name_list()?;
        self.expect_keyword(Keyword::Set)?;
        let cycle_mark_column = self.col_id()?;
        let (mark, default) = if self.take_keyword(Keyword::To) {
            let mark = self.aexpr_const()?;
            self.expect_keyword(Keyword::Default)?;
            (mark, self.aexpr_const()?)
        } else {
            let boolean = |value| super::primary::constant(Value::Boolean(value), location);
            (boolean(true), boolean(false))
        };
        self.expect_keyword(Keyword::Using)?;
        Ok(Some(CteCycleClause {
            cycle_col_list,
            cycle_mark_column,
            cycle_mark_value: mark,
            cycle_mark_default: default,
            cycle_path_column: self.col_id()?,
            location,
        }))
    }

    /// A constant: a literal, which may have a type in front.
    fn aexpr_const(&mut self) -> Parse<crate::tree::Expr> {
        use crate::tree::Node;
        let token = self.token(0);
        if self.is_char(b'(') {
            return Err(self.unexpected());
        }
        let expr = self.c_expr()?;
        match expr.node {
            Node::AConst(_) | Node::TypeCast(_) => Ok(expr),
            _ => Err(self.error_near("syntax error", token)),
        }
    }
}
