//! Queries as a whole: set operations, and the clauses that apply to the result.

use super::paren::Paren;
use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::tree::{
    Expr, LimitCount, LockStrength, LockWaitPolicy, LockingClause, SelectBody, SelectStmt,
    SetOperation, SortBy, SortByDir, SortByNulls, WithClause,
};

/// How tightly set operations bind.
const UNION: u8 = 1;
const INTERSECT: u8 = 2;

impl Parser<'_> {
    /// SelectStmt: with parentheses or without.
    pub(super) fn select_stmt(&mut self) -> Parse<SelectStmt> {
        self.select_no_parens()
    }

    /// A query that may begin with WITH.
    pub(super) fn select_no_parens(&mut self) -> Parse<SelectStmt> {
        self.deeper(|parser| {
            let with = parser.opt_with_clause()?;
            parser.select_after_with(with)
        })
    }

    pub(super) fn select_after_with(&mut self, with: Option<WithClause>) -> Parse<SelectStmt> {
        let first = self.select_clause()?;
        let mut select = self.set_operations(first, UNION)?;
        self.select_options(&mut select)?;
        if let Some(with) = with {
            if select.with_clause.is_some() {
                let message = "multiple WITH clauses not allowed";
                return Err(self.error_at(message, with.location));
            }
            select.with_clause = Some(with);
        }
        Ok(select)
    }

    /// What comes behind a query in parentheses.
    pub(super) fn rest_of_select(&mut self, first: SelectStmt) -> Parse<SelectStmt> {
        let mut select = self.set_operations(first, UNION)?;
        self.select_options(&mut select)?;
        Ok(select)
    }

    /// An operand of a set operation.
    fn select_clause(&mut self) -> Parse<SelectStmt> {
        if !self.is_char(b'(') {
            return self.simple_select();
        }
        if !self.is_select_in_parens() {
            return self.select_with_parens();
        }
        match self.paren()? {
            Paren::Select(select) => Ok(*select),
            Paren::List(_) => Err(self.unexpected()),
        }
    }

    fn set_operations(&mut self, first: SelectStmt, least: u8) -> Parse<SelectStmt> {
        let mut left = first;
        let mut steps = 0;
        loop {
            let (op, level) = match self.keyword() {
                Some(Keyword::Union) => (SetOperation::Union, UNION),
                Some(Keyword::Except) => (SetOperation::Except, UNION),
                Some(Keyword::Intersect) => (SetOperation::Intersect, INTERSECT),
                _ => break,
            };
            if level < least {
                break;
            }
            self.spend(2)?;
            steps += 2;
            let location = self.bump().start;
            let all = self.take_keyword(Keyword::All);
            if !all {
                self.take_keyword(Keyword::Distinct);
            }
            let operand = self.select_clause()?;
            let right = self.set_operations(operand, level + 1)?;
            let body = SelectBody::SetOp { op, all, larg: Box::new(left), rarg: Box::new(right) };
            left = select_of(body, location);
        }
        self.give_back(steps);
        Ok(left)
    }

    /// ORDER BY, LIMIT, OFFSET, FETCH, FOR.
    fn select_options(&mut self, select: &mut SelectStmt) -> Parse<()> {
        let place = self.location();
        let sort = self.opt_sort_clause()?;
        if !sort.is_empty() {
            if !select.sort_clause.is_empty() {
                let message = "multiple ORDER BY clauses not allowed";
                let place = sort.first().map_or(place, |first| first.location);
                return Err(self.error_at(message, place));
            }
            select.sort_clause = sort;
        }
        let locked = self.for_locking_clause(&mut select.locking_clause)?;
        self.select_limit(select)?;
        if !locked {
            self.for_locking_clause(&mut select.locking_clause)?;
        }
        self.check_ties(select)
    }

    /// WITH TIES needs an order, and all rows.
    fn check_ties(&self, select: &SelectStmt) -> Parse<()> {
        if !select.limit_count.as_ref().is_some_and(|count| count.with_ties) {
            return Ok(());
        }
        let skips = |lock: &LockingClause| lock.wait_policy == LockWaitPolicy::Skip;
        let message = if select.sort_clause.is_empty() {
            "WITH TIES cannot be specified without ORDER BY clause"
        } else if select.locking_clause.iter().any(skips) {
            "SKIP LOCKED and WITH TIES options cannot be used together"
        } else {
            return Ok(());
        };
        Err(self.error_at(message, 0).without_location())
    }

    /// LIMIT and OFFSET, each once, in any order.
    fn select_limit(&mut self, select: &mut SelectStmt) -> Parse<()> {
        let (mut limited, mut offset) = (false, false);
        loop {
            let place = self.location();
            match self.keyword() {
                Some(Keyword::Limit) if !limited => {
                    limited = true;
                    let count = self.limit_clause()?;
                    self.set_limit(select, count, place)?;
                }
                Some(Keyword::Fetch) if !limited => {
                    limited = true;
                    let count = self.fetch_first()?;
                    self.set_limit(select, count, place)?;
                }
                Some(Keyword::Offset) if !offset => {
                    offset = true;
                    self.bump();
                    let value = self.a_expr()?;
                    // The spelling that goes with FETCH FIRST.
                    self.take_one_of(&[Keyword::Row, Keyword::Rows]);
                    if select.limit_offset.is_some() {
                        let message = "multiple OFFSET clauses not allowed";
                        return Err(self.error_at(message, value.location));
                    }
                    select.limit_offset = Some(value);
                }
                _ => return Ok(()),
            }
        }
    }

    fn set_limit(&self, select: &mut SelectStmt, count: LimitCount, place: u32) -> Parse<()> {
        if select.limit_count.is_some() {
            let place = count.count.as_ref().map_or(place, |count| count.location);
            return Err(self.error_at("multiple LIMIT clauses not allowed", place));
        }
        select.limit_count = Some(count);
        Ok(())
    }

    fn limit_clause(&mut self) -> Parse<LimitCount> {
        self.bump();
        if self.take_keyword(Keyword::All) {
            return Ok(LimitCount { count: None, with_ties: false });
        }
        let count = Some(self.a_expr()?);
        if self.is_char(b',') {
            let place = self.location();
            self.bump();
            self.a_expr()?;
            return Err(self
                .error_at("LIMIT #,# syntax is not supported", place)
                .with_hint("Use separate LIMIT and OFFSET clauses."));
        }
        Ok(LimitCount { count, with_ties: false })
    }

    /// FETCH FIRST n ROWS ONLY.
    fn fetch_first(&mut self) -> Parse<LimitCount> {
        let place = self.bump().start;
        if self.take_one_of(&[Keyword::First, Keyword::Next]).is_none() {
            return Err(self.unexpected());
        }
        let count = if matches!(self.keyword(), Some(Keyword::Row | Keyword::Rows)) {
            super::type_name::integer(1, Some(place))
        } else {
            self.fetch_count()?
        };
        if self.take_one_of(&[Keyword::Row, Keyword::Rows]).is_none() {
            return Err(self.unexpected());
        }
        let with_ties = !self.take_keyword(Keyword::Only);
        if with_ties {
            self.expect_keywords(&[Keyword::With, Keyword::Ties])?;
        }
        Ok(LimitCount { count: Some(count), with_ties })
    }

    /// A number with its sign, or an operand.
    fn fetch_count(&mut self) -> Parse<Expr> {
        if self.is_char(b'+') || self.is_char(b'-') {
            let location = self.location();
            let value = self.numeric_only()?;
            return Ok(super::primary::constant(value, location));
        }
        self.c_expr()
    }

    pub(super) fn opt_sort_clause(&mut self) -> Parse<Vec<SortBy>> {
        if !self.take_keyword(Keyword::Order) {
            return Ok(Vec::new());
        }
        self.expect_keyword(Keyword::By)?;
        self.list(Self::sort_by)
    }

    fn sort_by(&mut self) -> Parse<SortBy> {
        let node = self.a_expr()?;
        let location = self.location();
        let sortby_dir = if self.take_keyword(Keyword::Using) {
            SortByDir::Using(self.qual_all_op()?)
        } else {
            self.opt_asc_desc()
        };
        let sortby_nulls = self.opt_nulls_order()?;
        let using = matches!(sortby_dir, SortByDir::Using(_));
        let location = if using { location } else { node.location };
        Ok(SortBy { node, sortby_dir, sortby_nulls, location })
    }

    pub(super) fn opt_asc_desc(&mut self) -> SortByDir {
        match self.take_one_of(&[Keyword::Asc, Keyword::Desc]) {
            Some(Keyword::Asc) => SortByDir::Asc,
            Some(_) => SortByDir::Desc,
            None => SortByDir::Default,
        }
    }

    pub(super) fn opt_nulls_order(&mut self) -> Parse<SortByNulls> {
        let order = if self.take_keywords(&[Keyword::Nulls, Keyword::First]) {
            SortByNulls::First
        } else if self.take_keywords(&[Keyword::Nulls, Keyword::Last]) {
            SortByNulls::Last
        } else {
            SortByNulls::Default
        };
        Ok(order)
    }

    /// FOR UPDATE and its sisters. True if there was one.
    fn for_locking_clause(&mut self, locks: &mut Vec<LockingClause>) -> Parse<bool> {
        let mut any = false;
        while self.is_keyword(Keyword::For) {
            let location = self.bump().start;
            any = true;
            if !any_lock(self) {
                if self.take_keyword(Keyword::Read) {
                    self.expect_keyword(Keyword::Only)?;
                    return Ok(true);
                }
                return Err(self.unexpected());
            }
            let strength = self.lock_strength()?;
            let locked_rels = if self.take_keyword(Keyword::Of) {
                self.list(Self::qualified_name)?
            } else {
                Vec::new()
            };
            let wait_policy = if self.take_keyword(Keyword::Nowait) {
                LockWaitPolicy::Error
            } else if self.take_keyword(Keyword::Skip) {
                self.expect_keyword(Keyword::Locked)?;
                LockWaitPolicy::Skip
            } else {
                LockWaitPolicy::Block
            };
            locks.push(LockingClause { locked_rels, strength, wait_policy, location });
        }
        Ok(any)
    }

    fn lock_strength(&mut self) -> Parse<LockStrength> {
        if self.take_keyword(Keyword::Update) {
            return Ok(LockStrength::ForUpdate);
        }
        if self.take_keyword(Keyword::Share) {
            return Ok(LockStrength::ForShare);
        }
        if self.take_keyword(Keyword::Key) {
            self.expect_keyword(Keyword::Share)?;
            return Ok(LockStrength::ForKeyShare);
        }
        self.expect_keywords(&[Keyword::No, Keyword::Key, Keyword::Update])?;
        Ok(LockStrength::ForNoKeyUpdate)
    }
}

fn any_lock(parser: &Parser<'_>) -> bool {
    matches!(parser.keyword(), Some(Keyword::Update | Keyword::Share | Keyword::Key | Keyword::No))
}

pub(super) fn select_of(body: SelectBody, location: u32) -> SelectStmt {
    SelectStmt {
        with_clause: None,
        body,
        sort_clause: Vec::new(),
        limit_offset: None,
        limit_count: None,
        locking_clause: Vec::new(),
        location,
    }
}
