//! Statements about statements, cursors and maintenance.

use super::option::option;
use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::tree::{
    DeclareCursorStmt, DefElem, DiscardMode, DropBehavior, ExecuteStmt, ExplainStmt,
    FetchDirection, FetchStmt, LockMode, LockStmt, Name, PrepareStmt, RangeVar, ReindexObject,
    ReindexStmt, Statement, TruncateStmt, VacuumStmt,
};

impl Parser<'_> {
    pub(super) fn explain(&mut self) -> Parse<Statement> {
        self.bump();
        let mut options = Vec::new();
        if self.is_char(b'(') && !self.is_char_at(1, b'(') && !self.is_select_in_parens() {
            options = self.utility_options()?;
        } else {
            let location = self.location();
            if self.take_one_of(&[Keyword::Analyze, Keyword::Analyse]).is_some() {
                options.push(option("analyze".into(), None, location));
            }
            let location = self.location();
            if self.take_keyword(Keyword::Verbose) {
                options.push(option("verbose".into(), None, location));
            }
        }
        let query = match self.keyword() {
            Some(
                Keyword::Select
                | Keyword::Values
                | Keyword::Table
                | Keyword::With
                | Keyword::Insert
                | Keyword::Update
                | Keyword::Delete
                | Keyword::Merge
                | Keyword::Declare
                | Keyword::Create
                | Keyword::Refresh
                | Keyword::Execute,
            ) => self.raw(Self::explained)?,
            None if self.is_char(b'(') => self.raw(Self::explained)?,
            _ => return Err(self.unexpected()),
        };
        Ok(Statement::Explain(Box::new(ExplainStmt { query, options })))
    }

    /// Of CREATE, only what runs a query may be explained.
    fn explained(&mut self) -> Parse<Statement> {
        let create = self.is_keyword(Keyword::Create);
        let stmt = self.statement()?;
        if create && !matches!(stmt, Statement::CreateTableAs(_)) {
            return Err(self.unexpected());
        }
        Ok(stmt)
    }

    pub(super) fn prepare(&mut self) -> Parse<Statement> {
        self.bump();
        let name = self.col_id()?;
        let argtypes =
            if self.is_char(b'(') { self.paren_list(Self::type_name)? } else { Vec::new() };
        self.expect_keyword(Keyword::As)?;
        let query = self.raw(Self::preparable)?;
        Ok(Statement::Prepare(Box::new(PrepareStmt { name, argtypes, query })))
    }

    pub(super) fn execute(&mut self) -> Parse<Statement> {
        self.expect_keyword(Keyword::Execute)?;
        let name = self.col_id()?;
        let params = if self.is_char(b'(') { self.paren_list(Self::a_expr)? } else { Vec::new() };
        Ok(Statement::Execute(Box::new(ExecuteStmt { name, params })))
    }

    pub(super) fn deallocate(&mut self) -> Parse<Statement> {
        self.bump();
        if self.is_keyword(Keyword::Prepare)
            && (self.is_col_id_at(1) || self.is_keyword_at(1, Keyword::All))
        {
            self.bump();
        }
        if self.take_keyword(Keyword::All) {
            return Ok(Statement::Deallocate(None));
        }
        Ok(Statement::Deallocate(Some(self.col_id()?)))
    }

    pub(super) fn declare_cursor(&mut self) -> Parse<Statement> {
        self.bump();
        let portalname = self.col_id()?;
        let (mut binary, mut scroll, mut insensitive) = (false, None, None);
        loop {
            let options = [
                Keyword::No,
                Keyword::Scroll,
                Keyword::Binary,
                Keyword::Asensitive,
                Keyword::Insensitive,
            ];
            match self.take_one_of(&options) {
                Some(Keyword::No) => {
                    self.expect_keyword(Keyword::Scroll)?;
                    scroll = Some(false);
                }
                Some(Keyword::Scroll) => scroll = Some(true),
                Some(Keyword::Binary) => binary = true,
                Some(keyword) => insensitive = Some(keyword == Keyword::Insensitive),
                None => break,
            }
        }
        self.expect_keyword(Keyword::Cursor)?;
        let hold = match self.take_one_of(&[Keyword::With, Keyword::Without]) {
            Some(keyword) => {
                self.expect_keyword(Keyword::Hold)?;
                keyword == Keyword::With
            }
            None => false,
        };
        self.expect_keyword(Keyword::For)?;
        let query = self.select_stmt()?;
        Ok(Statement::DeclareCursor(Box::new(DeclareCursorStmt {
            portalname,
            binary,
            scroll,
            insensitive,
            hold,
            query,
        })))
    }

    pub(super) fn fetch(&mut self) -> Parse<Statement> {
        let ismove = self.bump().kind == crate::lexer::TokenKind::Keyword(Keyword::Move);
        let (direction, how_many) = self.fetch_direction()?;
        self.take_one_of(&[Keyword::From, Keyword::In]);
        let portalname = self.col_id()?;
        let stmt = FetchStmt { direction, how_many, portalname, ismove };
        Ok(Statement::Fetch(Box::new(stmt)))
    }

    fn fetch_direction(&mut self) -> Parse<(FetchDirection, i64)> {
        use FetchDirection::{Absolute, Backward, Forward, Relative};
        let alone = matches!(
            self.kind_at(1),
            crate::lexer::TokenKind::End | crate::lexer::TokenKind::Char(b';')
        );
        if self.is_char(b'-') || self.is_char(b'+') || self.is_iconst_at(0) {
            return Ok((Forward, i64::from(self.signed_iconst()?)));
        }
        // A cursor may have one of these words as its name.
        let Some(keyword) = self.keyword().filter(|_| !alone) else { return Ok((Forward, 1)) };
        let simple = match keyword {
            Keyword::Next => (Forward, 1),
            Keyword::Prior => (Backward, 1),
            Keyword::First => (Absolute, 1),
            Keyword::Last => (Absolute, -1),
            Keyword::All => (Forward, i64::MAX),
            Keyword::Absolute | Keyword::Relative => {
                self.bump();
                let direction = if keyword == Keyword::Absolute { Absolute } else { Relative };
                return Ok((direction, i64::from(self.signed_iconst()?)));
            }
            Keyword::Forward | Keyword::Backward => {
                self.bump();
                let direction = if keyword == Keyword::Forward { Forward } else { Backward };
                if self.take_keyword(Keyword::All) {
                    return Ok((direction, i64::MAX));
                }
                if self.is_char(b'-') || self.is_char(b'+') || self.is_iconst_at(0) {
                    return Ok((direction, i64::from(self.signed_iconst()?)));
                }
                return Ok((direction, 1));
            }
            _ => return Ok((Forward, 1)),
        };
        self.bump();
        Ok(simple)
    }

    pub(super) fn close(&mut self) -> Parse<Statement> {
        self.bump();
        if self.take_keyword(Keyword::All) {
            return Ok(Statement::ClosePortal(None));
        }
        Ok(Statement::ClosePortal(Some(self.col_id()?)))
    }

    pub(super) fn lock(&mut self) -> Parse<Statement> {
        self.bump();
        self.take_keyword(Keyword::Table);
        let relations = self.list(Self::relation_expr)?;
        let mut mode = LockMode::AccessExclusive;
        if self.take_keyword(Keyword::In) {
            mode = self.lock_mode()?;
            self.expect_keyword(Keyword::Mode)?;
        }
        let nowait = self.take_keyword(Keyword::Nowait);
        Ok(Statement::Lock(Box::new(LockStmt { relations, mode, nowait })))
    }

    fn lock_mode(&mut self) -> Parse<LockMode> {
        let words = [Keyword::Access, Keyword::Row, Keyword::Share, Keyword::Exclusive];
        let first = match self.take_one_of(&words) {
            Some(Keyword::Exclusive) => return Ok(LockMode::Exclusive),
            Some(Keyword::Share) if self.is_keyword(Keyword::Mode) => return Ok(LockMode::Share),
            Some(first) => first,
            None => return Err(self.unexpected()),
        };
        if first == Keyword::Share {
            let second = self.take_one_of(&[Keyword::Update, Keyword::Row]);
            let Some(second) = second else { return Err(self.unexpected()) };
            self.expect_keyword(Keyword::Exclusive)?;
            return Ok(if second == Keyword::Update {
                LockMode::ShareUpdateExclusive
            } else {
                LockMode::ShareRowExclusive
            });
        }
        match (first, self.take_one_of(&[Keyword::Share, Keyword::Exclusive])) {
            (Keyword::Access, Some(Keyword::Share)) => Ok(LockMode::AccessShare),
            (Keyword::Access, Some(_)) => Ok(LockMode::AccessExclusive),
            (_, Some(Keyword::Share)) => Ok(LockMode::RowShare),
            (_, Some(_)) => Ok(LockMode::RowExclusive),
            (_, None) => Err(self.unexpected()),
        }
    }

    pub(super) fn truncate(&mut self) -> Parse<Statement> {
        self.bump();
        self.take_keyword(Keyword::Table);
        let relations = self.list(Self::relation_expr)?;
        let restart_seqs = match self.take_one_of(&[Keyword::Continue, Keyword::Restart]) {
            Some(keyword) => {
                self.expect_keyword(Keyword::Identity)?;
                keyword == Keyword::Restart
            }
            None => false,
        };
        let behavior = self.opt_drop_behavior();
        let stmt = TruncateStmt { relations, restart_seqs, behavior };
        Ok(Statement::Truncate(Box::new(stmt)))
    }

    pub(super) fn opt_drop_behavior(&mut self) -> DropBehavior {
        match self.take_one_of(&[Keyword::Cascade, Keyword::Restrict]) {
            Some(Keyword::Cascade) => DropBehavior::Cascade,
            _ => DropBehavior::Restrict,
        }
    }

    pub(super) fn vacuum(&mut self) -> Parse<Statement> {
        let is_vacuumcmd = self.bump().kind == crate::lexer::TokenKind::Keyword(Keyword::Vacuum);
        let options = if self.is_char(b'(') {
            self.utility_options()?
        } else {
            self.vacuum_words(is_vacuumcmd)
        };
        let rels = if self.is_col_id() { self.list(Self::vacuum_relation)? } else { Vec::new() };
        Ok(Statement::Vacuum(Box::new(VacuumStmt { options, rels, is_vacuumcmd })))
    }

    fn vacuum_words(&mut self, vacuum: bool) -> Vec<DefElem> {
        let mut options = Vec::new();
        let words: &[Keyword] = if vacuum {
            &[Keyword::Full, Keyword::Freeze, Keyword::Verbose, Keyword::Analyze]
        } else {
            &[Keyword::Verbose]
        };
        for &word in words {
            let location = self.location();
            let other = word == Keyword::Analyze && self.take_keyword(Keyword::Analyse);
            if other || self.take_keyword(word) {
                options.push(option(word.text().into(), None, location));
            }
        }
        options
    }

    fn vacuum_relation(&mut self) -> Parse<(RangeVar, Vec<Name>)> {
        let relation = self.qualified_name()?;
        Ok((relation, self.opt_column_list()?))
    }

    pub(super) fn reindex(&mut self) -> Parse<Statement> {
        self.bump();
        let options = if self.is_char(b'(') { self.utility_options()? } else { Vec::new() };
        let kinds =
            [Keyword::Index, Keyword::Table, Keyword::Schema, Keyword::System, Keyword::Database];
        let Some(kind) = self.take_one_of(&kinds) else { return Err(self.unexpected()) };
        let concurrent = self.take_keyword(Keyword::Concurrently);
        let object = match kind {
            Keyword::Index => ReindexObject::Index(self.qualified_name()?),
            Keyword::Table => ReindexObject::Table(self.qualified_name()?),
            Keyword::Schema => ReindexObject::Schema(self.col_id()?),
            Keyword::System => ReindexObject::System(self.col_id()?),
            _ => ReindexObject::Database(self.col_id()?),
        };
        Ok(Statement::Reindex(Box::new(ReindexStmt { object, concurrent, options })))
    }

    pub(super) fn discard(&mut self) -> Parse<Statement> {
        self.bump();
        let modes =
            [Keyword::All, Keyword::Plans, Keyword::Sequences, Keyword::Temp, Keyword::Temporary];
        let mode = match self.take_one_of(&modes) {
            Some(Keyword::All) => DiscardMode::All,
            Some(Keyword::Plans) => DiscardMode::Plans,
            Some(Keyword::Sequences) => DiscardMode::Sequences,
            Some(_) => DiscardMode::Temp,
            None => return Err(self.unexpected()),
        };
        Ok(Statement::Discard(mode))
    }

    pub(super) fn notify(&mut self, keyword: Keyword) -> Parse<Statement> {
        self.bump();
        if keyword == Keyword::Unlisten && self.take_char(b'*') {
            return Ok(Statement::Unlisten(None));
        }
        let conditionname = self.col_id()?;
        match keyword {
            Keyword::Listen => Ok(Statement::Listen(conditionname)),
            Keyword::Unlisten => Ok(Statement::Unlisten(Some(conditionname))),
            _ => {
                let payload = if self.take_char(b',') { Some(self.string()?) } else { None };
                Ok(Statement::Notify { conditionname, payload })
            }
        }
    }
}
