//! Constraints of columns, and the parts that those of tables share with them.

mod table;

use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::tree::{
    ColumnDef, ConstrType, Constraint, DefElem, FkAction, FkMatchType, ForeignConstraint,
    KeyConstraint, Name, QualifiedName,
};

impl Parser<'_> {
    /// The constraints behind a column, and its collation.
    pub(super) fn column_constraints(&mut self, column: &mut ColumnDef) -> Parse<()> {
        loop {
            let location = self.location();
            if self.take_keyword(Keyword::Collate) {
                if column.coll_clause.is_some() {
                    return Err(self.error_at("multiple COLLATE clauses not allowed", location));
                }
                column.coll_clause = Some(QualifiedName { names: self.any_name()?, location });
                continue;
            }
            let conname =
                if self.take_keyword(Keyword::Constraint) { Some(self.col_id()?) } else { None };
            let contype = match self.column_constraint(conname.is_some())? {
                Some(contype) => contype,
                None if conname.is_some() => return Err(self.unexpected()),
                None => return Ok(()),
            };
            let mut constraint = constraint_of(contype, location);
            constraint.conname = conname;
            if matches!(constraint.contype, ConstrType::Check(_)) {
                constraint.is_no_inherit = self.take_keywords(&[Keyword::No, Keyword::Inherit]);
            }
            column.constraints.push(constraint);
        }
    }

    fn column_constraint(&mut self, named: bool) -> Parse<Option<ConstrType>> {
        let Some(keyword) = self.keyword() else { return Ok(None) };
        let contype = match keyword {
            Keyword::Not if !named && self.is_keyword_at(1, Keyword::Deferrable) => {
                self.bump();
                ConstrType::AttrNotDeferrable
            }
            Keyword::Not => {
                self.bump();
                if !self.is_keyword(Keyword::Null) {
                    return Err(self.unexpected());
                }
                ConstrType::NotNull
            }
            Keyword::Null => ConstrType::Null,
            Keyword::Deferrable if !named => ConstrType::AttrDeferrable,
            Keyword::Initially if !named => {
                self.bump();
                match self.keyword() {
                    Some(Keyword::Deferred) => ConstrType::AttrDeferred,
                    Some(Keyword::Immediate) => ConstrType::AttrImmediate,
                    _ => return Err(self.unexpected()),
                }
            }
            _ => return self.long_column_constraint(keyword),
        };
        self.bump();
        Ok(Some(contype))
    }

    fn long_column_constraint(&mut self, keyword: Keyword) -> Parse<Option<ConstrType>> {
        let contype = match keyword {
            Keyword::Unique => {
                self.bump();
                let nulls_not_distinct = self.opt_nulls_not_distinct()?;
                ConstrType::Unique { nulls_not_distinct, key: self.key_options(Vec::new())? }
            }
            Keyword::Primary => {
                self.expect_keywords(&[Keyword::Primary, Keyword::Key])?;
                ConstrType::Primary(self.key_options(Vec::new())?)
            }
            Keyword::Check => {
                self.bump();
                self.expect_char(b'(')?;
                let check = self.a_expr()?;
                self.expect_char(b')')?;
                ConstrType::Check(check)
            }
            Keyword::Default => {
                self.bump();
                let start = self.location();
                let default = self.b_expr()?;
                ConstrType::Default(default, start..self.previous_end())
            }
            Keyword::Generated => self.generated()?,
            Keyword::References => {
                self.bump();
                ConstrType::Foreign(Box::new(self.references(Vec::new())?))
            }
            _ => return Ok(None),
        };
        Ok(Some(contype))
    }

    fn generated(&mut self) -> Parse<ConstrType> {
        let place = self.bump().start;
        let always = match self.take_one_of(&[Keyword::Always, Keyword::By]) {
            Some(Keyword::Always) => true,
            Some(_) => {
                self.expect_keyword(Keyword::Default)?;
                false
            }
            None => return Err(self.unexpected()),
        };
        self.expect_keyword(Keyword::As)?;
        if self.take_keyword(Keyword::Identity) {
            let options = if self.take_char(b'(') {
                let options = self.sequence_options()?;
                if options.is_empty() {
                    return Err(self.unexpected());
                }
                self.expect_char(b')')?;
                options
            } else {
                Vec::new()
            };
            return Ok(ConstrType::Identity { always, options });
        }
        self.expect_char(b'(')?;
        let expr = self.a_expr()?;
        self.expect_char(b')')?;
        self.expect_keyword(Keyword::Stored)?;
        if !always {
            let message = "for a generated column, GENERATED ALWAYS must be specified";
            // PostgreSQL points at what stands behind the first word.
            let place = place + "generated ".len() as u32;
            return Err(self.error_at(message, place));
        }
        Ok(ConstrType::Generated(expr))
    }

    pub(super) fn opt_nulls_not_distinct(&mut self) -> Parse<bool> {
        if self.take_keywords(&[Keyword::Nulls, Keyword::Not]) {
            self.expect_keyword(Keyword::Distinct)?;
            return Ok(true);
        }
        if self.take_keyword(Keyword::Nulls) {
            self.expect_keyword(Keyword::Distinct)?;
        }
        Ok(false)
    }

    /// What comes behind the columns of a key.
    fn key_options(&mut self, keys: Vec<Name>) -> Parse<KeyConstraint> {
        let including = if !keys.is_empty() && self.take_keyword(Keyword::Include) {
            self.paren_list(Self::col_id)?
        } else {
            Vec::new()
        };
        let options: Vec<DefElem> =
            if self.take_keyword(Keyword::With) { self.definition(false)? } else { Vec::new() };
        let indexspace = self.constraint_tablespace()?;
        Ok(KeyConstraint { keys, including, options, indexname: None, indexspace })
    }

    fn constraint_tablespace(&mut self) -> Parse<Option<Name>> {
        if !self.take_keyword(Keyword::Using) {
            return Ok(None);
        }
        self.expect_keywords(&[Keyword::Index, Keyword::Tablespace])?;
        Ok(Some(self.col_id()?))
    }

    /// The relation behind REFERENCES, and what comes behind it.
    fn references(&mut self, fk_attrs: Vec<Name>) -> Parse<ForeignConstraint> {
        let pktable = self.qualified_name()?;
        let pk_attrs = self.opt_column_list()?;
        let mut fk = ForeignConstraint {
            fk_attrs,
            pktable,
            pk_attrs,
            fk_matchtype: FkMatchType::Simple,
            fk_upd_action: FkAction::NoAction,
            fk_del_action: FkAction::NoAction,
            fk_del_set_cols: Vec::new(),
        };
        let place = self.location();
        if self.take_keyword(Keyword::Match) {
            match self.take_one_of(&[Keyword::Full, Keyword::Partial, Keyword::Simple]) {
                Some(Keyword::Full) => fk.fk_matchtype = FkMatchType::Full,
                Some(Keyword::Partial) => {
                    return Err(self.unsupported("MATCH PARTIAL not yet implemented", place));
                }
                Some(_) => {}
                None => return Err(self.unexpected()),
            }
        }
        let (mut update, mut delete) = (false, false);
        while self.is_keyword(Keyword::On) {
            let place = self.bump().start;
            match self.take_one_of(&[Keyword::Update, Keyword::Delete]) {
                Some(Keyword::Update) if !update => {
                    update = true;
                    let (action, cols, words) = self.key_action()?;
                    if !cols.is_empty() {
                        let message = format!(
                            "a column list with {words} is only supported for ON DELETE actions"
                        );
                        return Err(self.unsupported(message, place));
                    }
                    fk.fk_upd_action = action;
                }
                Some(Keyword::Delete) if !delete => {
                    delete = true;
                    (fk.fk_del_action, fk.fk_del_set_cols, _) = self.key_action()?;
                }
                Some(_) => {
                    self.at -= 1;
                    return Err(self.unexpected());
                }
                None => return Err(self.unexpected()),
            }
        }
        Ok(fk)
    }

    fn key_action(&mut self) -> Parse<(FkAction, Vec<Name>, &'static str)> {
        let words = [Keyword::No, Keyword::Restrict, Keyword::Cascade, Keyword::Set];
        match self.take_one_of(&words) {
            Some(Keyword::No) => {
                self.expect_keyword(Keyword::Action)?;
                Ok((FkAction::NoAction, Vec::new(), ""))
            }
            Some(Keyword::Restrict) => Ok((FkAction::Restrict, Vec::new(), "")),
            Some(Keyword::Cascade) => Ok((FkAction::Cascade, Vec::new(), "")),
            Some(_) => {
                let (action, words) = match self.take_one_of(&[Keyword::Null, Keyword::Default]) {
                    Some(Keyword::Null) => (FkAction::SetNull, "SET NULL"),
                    Some(_) => (FkAction::SetDefault, "SET DEFAULT"),
                    None => return Err(self.unexpected()),
                };
                Ok((action, self.opt_column_list()?, words))
            }
            None => Err(self.unexpected()),
        }
    }
}

fn constraint_of(contype: ConstrType, location: u32) -> Constraint {
    Constraint {
        conname: None,
        contype,
        deferrable: false,
        initdeferred: false,
        skip_validation: false,
        is_no_inherit: false,
        location,
    }
}
