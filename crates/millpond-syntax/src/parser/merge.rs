//! MERGE.

use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::tree::{MergeAction, MergeStmt, MergeWhenClause, Overriding, Statement, WithClause};

impl Parser<'_> {
    pub(super) fn merge(&mut self, with_clause: Option<WithClause>) -> Parse<Statement> {
        self.expect_keywords(&[Keyword::Merge, Keyword::Into])?;
        let relation = self.relation_opt_alias()?;
        self.expect_keyword(Keyword::Using)?;
        let source_relation = self.table_ref()?;
        self.expect_keyword(Keyword::On)?;
        let join_condition = self.a_expr()?;
        let mut merge_when_clauses = vec![self.merge_when()?];
        while self.is_keyword(Keyword::When) {
            merge_when_clauses.push(self.merge_when()?);
        }
        Ok(Statement::Merge(Box::new(MergeStmt {
            with_clause,
            relation,
            source_relation,
            join_condition,
            merge_when_clauses,
        })))
    }

    fn merge_when(&mut self) -> Parse<MergeWhenClause> {
        let location = self.expect_keyword(Keyword::When)?.start;
        let matched = !self.take_keyword(Keyword::Not);
        self.expect_keyword(Keyword::Matched)?;
        let condition = if self.take_keyword(Keyword::And) { Some(self.a_expr()?) } else { None };
        self.expect_keyword(Keyword::Then)?;
        let action = match self.keyword() {
            Some(Keyword::Do) => {
                self.expect_keywords(&[Keyword::Do, Keyword::Nothing])?;
                MergeAction::Nothing
            }
            Some(Keyword::Delete) if matched => {
                self.bump();
                MergeAction::Delete
            }
            Some(Keyword::Update) if matched => {
                self.expect_keywords(&[Keyword::Update, Keyword::Set])?;
                MergeAction::Update(self.list(Self::set_clause)?)
            }
            Some(Keyword::Insert) if !matched => self.merge_insert()?,
            _ => return Err(self.unexpected()),
        };
        Ok(MergeWhenClause { matched, condition, action, location })
    }

    fn merge_insert(&mut self) -> Parse<MergeAction> {
        self.bump();
        let mut cols = Vec::new();
        let mut overriding = Overriding::NotSet;
        if self.take_keyword(Keyword::Default) {
            self.expect_keyword(Keyword::Values)?;
            return Ok(MergeAction::Insert { cols, overriding, values: Vec::new() });
        }
        if self.is_char(b'(') {
            cols = self.paren_list(Self::set_target)?;
        }
        if self.take_keyword(Keyword::Overriding) {
            overriding = self.overriding()?;
        }
        self.expect_keyword(Keyword::Values)?;
        let values = self.paren_list(Self::a_expr)?;
        Ok(MergeAction::Insert { cols, overriding, values })
    }
}
