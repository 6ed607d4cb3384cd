//! INSERT, UPDATE, DELETE.

use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::tree::{
    Alias, DeleteStmt, Expr, InferClause, InsertStmt, Node, OnConflictAction, OnConflictClause,
    Overriding, RangeVar, ResTarget, SetClause, Statement, UpdateStmt, WithClause,
};

impl Parser<'_> {
    pub(super) fn insert(&mut self, with_clause: Option<WithClause>) -> Parse<Statement> {
        self.expect_keywords(&[Keyword::Insert, Keyword::Into])?;
        let mut relation = self.qualified_name()?;
        if self.take_keyword(Keyword::As) {
            let aliasname = self.col_id()?;
            relation.alias = Some(Alias { aliasname, colnames: Vec::new() });
        }
        let mut stmt = InsertStmt {
            with_clause,
            relation,
            cols: Vec::new(),
            overriding: Overriding::NotSet,
            select_stmt: None,
            on_conflict_clause: None,
            returning_list: Vec::new(),
        };
        if self.take_keyword(Keyword::Default) {
            self.expect_keyword(Keyword::Values)?;
        } else {
            if self.is_char(b'(') && !self.is_char_at(1, b'(') && !self.is_select_in_parens() {
                stmt.cols = self.paren_list(Self::set_target)?;
            }
            if self.take_keyword(Keyword::Overriding) {
                stmt.overriding = self.overriding()?;
            }
            stmt.select_stmt = Some(self.select_stmt()?);
        }
        if self.is_keyword(Keyword::On) {
            stmt.on_conflict_clause = Some(self.on_conflict()?);
        }
        stmt.returning_list = self.returning()?;
        Ok(Statement::Insert(Box::new(stmt)))
    }

    pub(super) fn overriding(&mut self) -> Parse<Overriding> {
        let kind = match self.take_one_of(&[Keyword::User, Keyword::System]) {
            Some(Keyword::User) => Overriding::UserValue,
            Some(_) => Overriding::SystemValue,
            None => return Err(self.unexpected()),
        };
        self.expect_keyword(Keyword::Value)?;
        Ok(kind)
    }

    /// A column that gets a value, or a part of one.
    pub(super) fn set_target(&mut self) -> Parse<ResTarget> {
        let location = self.location();
        let name = Some(self.col_id()?);
        let indirection = self.indirection()?;
        self.check_indirection(&indirection)?;
        Ok(ResTarget { name, indirection, val: None, location })
    }

    fn on_conflict(&mut self) -> Parse<OnConflictClause> {
        let location = self.bump().start;
        self.expect_keyword(Keyword::Conflict)?;
        let infer = self.infer()?;
        self.expect_keyword(Keyword::Do)?;
        let action = if self.take_keyword(Keyword::Nothing) {
            OnConflictAction::Nothing
        } else {
            self.expect_keywords(&[Keyword::Update, Keyword::Set])?;
            let target_list = self.list(Self::set_clause)?;
            OnConflictAction::Update { target_list, where_clause: self.where_clause()? }
        };
        Ok(OnConflictClause { infer, action, location })
    }

    fn infer(&mut self) -> Parse<Option<InferClause>> {
        let location = self.location();
        let mut infer =
            InferClause { index_elems: Vec::new(), where_clause: None, conname: None, location };
        if self.is_char(b'(') {
            infer.index_elems = self.paren_list(Self::index_elem)?;
            infer.where_clause = self.where_clause()?;
        } else if self.take_keyword(Keyword::On) {
            self.expect_keyword(Keyword::Constraint)?;
            infer.conname = Some(self.col_id()?);
        } else {
            return Ok(None);
        }
        Ok(Some(infer))
    }

    fn returning(&mut self) -> Parse<Vec<ResTarget>> {
        if self.take_keyword(Keyword::Returning) { self.target_list() } else { Ok(Vec::new()) }
    }

    /// A relation, which may have an alias that is not the word SET.
    pub(super) fn relation_opt_alias(&mut self) -> Parse<RangeVar> {
        let mut relation = self.relation_expr()?;
        let named =
            self.take_keyword(Keyword::As) || self.is_col_id() && !self.is_keyword(Keyword::Set);
        let alias = if named { Some(self.col_id()?) } else { None };
        relation.alias = alias.map(|aliasname| Alias { aliasname, colnames: Vec::new() });
        Ok(relation)
    }

    pub(super) fn update(&mut self, with_clause: Option<WithClause>) -> Parse<Statement> {
        self.expect_keyword(Keyword::Update)?;
        let relation = self.relation_opt_alias()?;
        self.expect_keyword(Keyword::Set)?;
        let target_list = self.list(Self::set_clause)?;
        let from_clause =
            if self.take_keyword(Keyword::From) { self.list(Self::table_ref)? } else { Vec::new() };
        let where_clause = self.where_or_current_of()?;
        let returning_list = self.returning()?;
        Ok(Statement::Update(Box::new(UpdateStmt {
            with_clause,
            relation,
            target_list,
            from_clause,
            where_clause,
            returning_list,
        })))
    }

    pub(super) fn set_clause(&mut self) -> Parse<SetClause> {
        if self.is_char(b'(') {
            let targets = self.paren_list(Self::set_target)?;
            self.expect_char(b'=')?;
            let source = self.a_expr()?;
            return Ok(SetClause::Multi { targets, source });
        }
        let mut target = self.set_target()?;
        self.expect_char(b'=')?;
        target.val = Some(self.a_expr()?);
        Ok(SetClause::One(target))
    }

    fn where_or_current_of(&mut self) -> Parse<Option<Expr>> {
        if !self.are_keywords(&[Keyword::Where, Keyword::Current])
            || !self.is_keyword_at(2, Keyword::Of)
        {
            return self.where_clause();
        }
        let location = self.bump().start;
        self.bump();
        self.bump();
        let cursor = self.col_id()?;
        Ok(Some(Expr { node: Node::CurrentOfExpr(cursor), location }))
    }

    pub(super) fn delete(&mut self, with_clause: Option<WithClause>) -> Parse<Statement> {
        self.expect_keywords(&[Keyword::Delete, Keyword::From])?;
        let relation = self.relation_opt_alias()?;
        let using_clause = if self.take_keyword(Keyword::Using) {
            self.list(Self::table_ref)?
        } else {
            Vec::new()
        };
        let where_clause = self.where_or_current_of()?;
        let returning_list = self.returning()?;
        Ok(Statement::Delete(Box::new(DeleteStmt {
            with_clause,
            relation,
            using_clause,
            where_clause,
            returning_list,
        })))
    }
}
