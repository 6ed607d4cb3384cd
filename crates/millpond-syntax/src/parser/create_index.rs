//! CREATE INDEX, and the elements of indexes and of partitions' keys.

use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::tree::{IndexElem, IndexKey, IndexStmt, SortByDir, SortByNulls, Statement};

impl Parser<'_> {
    pub(super) fn create_index(&mut self) -> Parse<Statement> {
        self.expect_keyword(Keyword::Create)?;
        let unique = self.take_keyword(Keyword::Unique);
        self.expect_keyword(Keyword::Index)?;
        let concurrent = self.take_keyword(Keyword::Concurrently);
        let if_not_exists = self.if_not_exists()?;
        let idxname = if if_not_exists || !self.is_keyword(Keyword::On) {
            Some(self.col_id()?)
        } else {
            None
        };
        self.expect_keyword(Keyword::On)?;
        let relation = self.relation_expr()?;
        let access_method = self.opt_access_method()?;
        let index_params = self.paren_list(Self::index_elem)?;
        let index_including_params = if self.take_keyword(Keyword::Include) {
            self.paren_list(Self::index_elem)?
        } else {
            Vec::new()
        };
        let nulls_not_distinct = self.opt_nulls_not_distinct()?;
        let options = self.opt_reloptions()?;
        let table_space = self.opt_tablespace()?;
        let where_clause = self.where_clause()?;
        Ok(Statement::Index(Box::new(IndexStmt {
            idxname,
            relation,
            access_method,
            table_space,
            index_params,
            index_including_params,
            options,
            where_clause,
            unique,
            nulls_not_distinct,
            concurrent,
            if_not_exists,
        })))
    }

    /// A column, a call, or an expression in parentheses.
    fn index_key(&mut self) -> Parse<IndexElem> {
        let location = self.location();
        let key = if self.take_char(b'(') {
            let expr = self.a_expr()?;
            self.expect_char(b')')?;
            IndexKey::Expr(expr)
        } else if self.is_call() {
            IndexKey::Expr(self.func_expr_windowless()?)
        } else {
            IndexKey::Name(self.col_id()?)
        };
        let collation =
            if self.take_keyword(Keyword::Collate) { Some(self.any_name()?) } else { None };
        // NULLS FIRST and NULLS LAST are no class of operators.
        let nulls = self.is_keyword(Keyword::Nulls)
            && (self.is_keyword_at(1, Keyword::First) || self.is_keyword_at(1, Keyword::Last));
        let opclass = if self.is_col_id() && !nulls { Some(self.any_name()?) } else { None };
        Ok(IndexElem {
            key,
            collation,
            opclass,
            opclassopts: Vec::new(),
            ordering: SortByDir::Default,
            nulls_ordering: SortByNulls::Default,
            location,
        })
    }

    /// Whether a call is here.
    fn is_call(&self) -> bool {
        let mut ahead = 0;
        if self.keyword().is_some_and(|keyword| self.is_special_call(keyword)) {
            return true;
        }
        while self.is_char_at(ahead + 1, b'.') {
            ahead += 2;
        }
        self.is_char_at(ahead + 1, b'(') && !self.is_char(b'(')
    }

    pub(super) fn index_elem(&mut self) -> Parse<IndexElem> {
        let mut elem = self.index_key()?;
        if elem.opclass.is_some() && self.is_char(b'(') {
            elem.opclassopts = self.definition(true)?;
        }
        elem.ordering = self.opt_asc_desc();
        elem.nulls_ordering = self.opt_nulls_order()?;
        Ok(elem)
    }

    pub(super) fn part_elem(&mut self) -> Parse<IndexElem> {
        self.index_key()
    }
}
