//! Constraints of tables, with their attributes.

use super::constraint_of;
use crate::keyword::Keyword;
use crate::parser::{Parse, Parser};
use crate::tree::{ConstrType, Constraint, ExclusionConstraint, KeyConstraint};

/// Which attributes a table's constraint may have.
#[derive(Clone, Copy)]
struct Allowed {
    kind: &'static str,
    deferrable: bool,
    not_valid: bool,
    no_inherit: bool,
}

impl Parser<'_> {
    pub(in crate::parser) fn is_table_constraint(&self) -> bool {
        match self.keyword() {
            Some(
                Keyword::Constraint
                | Keyword::Check
                | Keyword::Unique
                | Keyword::Primary
                | Keyword::Foreign,
            ) => true,
            // No reserved word: a column may have the name.
            Some(Keyword::Exclude) => {
                self.is_keyword_at(1, Keyword::Using) || self.is_char_at(1, b'(')
            }
            _ => false,
        }
    }

    pub(in crate::parser) fn table_constraint(&mut self) -> Parse<Constraint> {
        let location = self.location();
        let conname =
            if self.take_keyword(Keyword::Constraint) { Some(self.col_id()?) } else { None };
        let allowed = |kind, deferrable, not_valid, no_inherit| Allowed {
            kind,
            deferrable,
            not_valid,
            no_inherit,
        };
        let words =
            [Keyword::Check, Keyword::Unique, Keyword::Primary, Keyword::Exclude, Keyword::Foreign];
        let (contype, allowed) = match self.take_one_of(&words) {
            Some(Keyword::Check) => {
                self.expect_char(b'(')?;
                let check = self.a_expr()?;
                self.expect_char(b')')?;
                (ConstrType::Check(check), allowed("CHECK", false, true, true))
            }
            Some(Keyword::Unique) => {
                let nulls_not_distinct = self.opt_nulls_not_distinct()?;
                let key = self.table_key()?;
                let contype = ConstrType::Unique { nulls_not_distinct, key };
                (contype, allowed("UNIQUE", true, false, false))
            }
            Some(Keyword::Primary) => {
                self.expect_keyword(Keyword::Key)?;
                let contype = ConstrType::Primary(self.table_key()?);
                (contype, allowed("PRIMARY KEY", true, false, false))
            }
            Some(Keyword::Exclude) => {
                let contype = ConstrType::Exclusion(Box::new(self.exclusion()?));
                (contype, allowed("EXCLUDE", true, false, false))
            }
            Some(_) => {
                self.expect_keyword(Keyword::Key)?;
                let attrs = self.paren_list(Self::col_id)?;
                self.expect_keyword(Keyword::References)?;
                let contype = ConstrType::Foreign(Box::new(self.references(attrs)?));
                (contype, allowed("FOREIGN KEY", true, true, false))
            }
            None => return Err(self.unexpected()),
        };
        let mut constraint = constraint_of(contype, location);
        constraint.conname = conname;
        self.constraint_attributes(&mut constraint, allowed)?;
        Ok(constraint)
    }

    /// The columns of a key, or an index that exists.
    fn table_key(&mut self) -> Parse<KeyConstraint> {
        if self.are_keywords(&[Keyword::Using, Keyword::Index]) {
            self.bump();
            self.bump();
            let indexname = Some(self.col_id()?);
            return Ok(KeyConstraint {
                keys: Vec::new(),
                including: Vec::new(),
                options: Vec::new(),
                indexname,
                indexspace: None,
            });
        }
        let keys = self.paren_list(Self::col_id)?;
        self.key_options(keys)
    }

    fn exclusion(&mut self) -> Parse<ExclusionConstraint> {
        let access_method = self.opt_access_method()?;
        let exclusions = self.paren_list(|parser| {
            let elem = parser.index_elem()?;
            parser.expect_keyword(Keyword::With)?;
            if parser.is_keyword(Keyword::Operator) && parser.is_char_at(1, b'(') {
                return Ok((elem, parser.qual_all_op()?));
            }
            Ok((elem, parser.any_operator()?))
        })?;
        let including = if self.take_keyword(Keyword::Include) {
            self.paren_list(Self::col_id)?
        } else {
            Vec::new()
        };
        let mut key = self.key_options(Vec::new())?;
        key.including = including;
        let where_clause = if self.take_keyword(Keyword::Where) {
            self.expect_char(b'(')?;
            let condition = self.a_expr()?;
            self.expect_char(b')')?;
            Some(condition)
        } else {
            None
        };
        Ok(ExclusionConstraint { access_method, exclusions, key, where_clause })
    }

    /// DEFERRABLE and its like behind a table's constraint.
    fn constraint_attributes(
        &mut self,
        constraint: &mut Constraint,
        allowed: Allowed,
    ) -> Parse<()> {
        let (mut not_deferrable, mut immediate) = (false, false);
        let mut deferrable = false;
        let mut first = None;
        loop {
            let place = self.location();
            match self.keyword() {
                Some(Keyword::Not) if self.is_keyword_at(1, Keyword::Deferrable) => {
                    self.bump();
                    not_deferrable = true;
                }
                Some(Keyword::Not) if self.is_keyword_at(1, Keyword::Valid) => {
                    self.bump();
                    constraint.skip_validation = true;
                }
                Some(Keyword::Deferrable) => deferrable = true,
                Some(Keyword::Initially) => {
                    self.bump();
                    match self.keyword() {
                        Some(Keyword::Immediate) => immediate = true,
                        Some(Keyword::Deferred) => constraint.initdeferred = true,
                        _ => return Err(self.unexpected()),
                    }
                }
                Some(Keyword::No) => {
                    self.bump();
                    if !self.is_keyword(Keyword::Inherit) {
                        return Err(self.unexpected());
                    }
                    constraint.is_no_inherit = true;
                }
                Some(Keyword::Not) => return Err(self.unexpected_at(1)),
                _ => break,
            }
            self.bump();
            first.get_or_insert(place);
            if not_deferrable && constraint.initdeferred {
                let message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
                return Err(self.error_at(message, place));
            }
            if not_deferrable && deferrable || immediate && constraint.initdeferred {
                return Err(self.error_at("conflicting constraint properties", place));
            }
        }
        constraint.deferrable = deferrable || constraint.initdeferred;
        let place = first.unwrap_or(constraint.location);
        self.check_attributes(constraint, allowed, place)
    }

    fn check_attributes(&self, constraint: &Constraint, allowed: Allowed, place: u32) -> Parse<()> {
        let refused = if constraint.deferrable && !allowed.deferrable {
            "DEFERRABLE"
        } else if constraint.skip_validation && !allowed.not_valid {
            "NOT VALID"
        } else if constraint.is_no_inherit && !allowed.no_inherit {
            "NO INHERIT"
        } else {
            return Ok(());
        };
        let message = format!("{} constraints cannot be marked {refused}", allowed.kind);
        Err(self.unsupported(message, place))
    }
}
