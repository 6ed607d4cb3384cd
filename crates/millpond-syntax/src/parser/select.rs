//! One SELECT, VALUES or TABLE, with the clauses of its own.

use super::query::select_of;
use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::lexer::TokenKind;
use crate::tree::{
    Distinct, Expr, Field, GroupingSetKind, IntoClause, Node, Persistence, RangeVar, ResTarget,
    SelectBody, SelectStmt, SimpleSelect, TableRef,
};

impl Parser<'_> {
    pub(super) fn simple_select(&mut self) -> Parse<SelectStmt> {
        let location = self.location();
        let body = match self.keyword() {
            Some(Keyword::Select) => {
                self.bump();
                SelectBody::Select(Box::new(self.select_clauses()?))
            }
            Some(Keyword::Values) => {
                self.bump();
                SelectBody::Values(self.list(|parser| parser.paren_list(Self::a_expr))?)
            }
            Some(Keyword::Table) => {
                self.bump();
                let relation = self.relation_expr()?;
                SelectBody::Select(Box::new(table(relation, location)))
            }
            _ => return Err(self.unexpected()),
        };
        Ok(select_of(body, location))
    }

    fn select_clauses(&mut self) -> Parse<SimpleSelect> {
        let mut select = empty_select();
        if self.take_keyword(Keyword::Distinct) {
            select.distinct_clause = Distinct::Distinct;
            if self.take_keyword(Keyword::On) {
                select.distinct_clause = Distinct::On(self.paren_list(Self::a_expr)?);
            }
            select.target_list = self.target_list()?;
        } else {
            self.take_keyword(Keyword::All);
            if !self.ends_target_list() {
                select.target_list = self.target_list()?;
            }
        }
        if self.take_keyword(Keyword::Into) {
            select.into_clause = Some(self.select_into()?);
        }
        if self.take_keyword(Keyword::From) {
            select.from_clause = self.list(Self::table_ref)?;
        }
        select.where_clause = self.where_clause()?;
        if self.take_keyword(Keyword::Group) {
            self.expect_keyword(Keyword::By)?;
            select.group_distinct = self.take_keyword(Keyword::Distinct);
            if !select.group_distinct {
                self.take_keyword(Keyword::All);
            }
            select.group_clause = self.list(Self::group_by_item)?;
        }
        if self.take_keyword(Keyword::Having) {
            select.having_clause = Some(self.a_expr()?);
        }
        if self.take_keyword(Keyword::Window) {
            select.window_clause = self.list(Self::window_definition)?;
        }
        Ok(select)
    }

    pub(super) fn where_clause(&mut self) -> Parse<Option<Expr>> {
        if self.take_keyword(Keyword::Where) { Ok(Some(self.a_expr()?)) } else { Ok(None) }
    }

    /// Whether SELECT has no targets: what comes here can only be behind them.
    fn ends_target_list(&self) -> bool {
        match self.kind() {
            TokenKind::End | TokenKind::Char(b';' | b')') => true,
            TokenKind::Keyword(keyword) => matches!(
                keyword,
                Keyword::From
                    | Keyword::Into
                    | Keyword::Where
                    | Keyword::Group
                    | Keyword::Having
                    | Keyword::Window
                    | Keyword::Union
                    | Keyword::Intersect
                    | Keyword::Except
                    | Keyword::Order
                    | Keyword::Limit
                    | Keyword::Offset
                    | Keyword::Fetch
                    | Keyword::For
                    | Keyword::On
                    | Keyword::Returning
                    | Keyword::With
            ),
            _ => false,
        }
    }

    pub(super) fn target_list(&mut self) -> Parse<Vec<ResTarget>> {
        self.list(Self::target)
    }

    fn target(&mut self) -> Parse<ResTarget> {
        let location = self.location();
        if self.take_char(b'*') {
            let star = Expr { node: Node::ColumnRef(vec![Field::Star]), location };
            return Ok(ResTarget {
                name: None,
                indirection: Vec::new(),
                val: Some(star),
                location,
            });
        }
        let val = Some(self.a_expr()?);
        let name = if self.take_keyword(Keyword::As) {
            Some(self.col_label()?)
        } else if self.is_bare_label() {
            Some(self.take_name()?)
        } else {
            None
        };
        Ok(ResTarget { name, indirection: Vec::new(), val, location })
    }

    /// What stands behind INTO: OptTempTableName.
    fn select_into(&mut self) -> Parse<IntoClause> {
        let persistence = self.opt_temp()?;
        self.take_keyword(Keyword::Table);
        let mut rel = self.qualified_name()?;
        rel.relpersistence = persistence;
        Ok(into_of(rel))
    }

    /// TEMP and its spellings, UNLOGGED, or nothing.
    pub(super) fn opt_temp(&mut self) -> Parse<Persistence> {
        let temp = [Keyword::Temporary, Keyword::Temp];
        if self.take_keyword(Keyword::Unlogged) {
            return Ok(Persistence::Unlogged);
        }
        let local = matches!(self.keyword(), Some(Keyword::Local | Keyword::Global))
            && (self.is_keyword_at(1, Keyword::Temp) || self.is_keyword_at(1, Keyword::Temporary));
        if local {
            self.bump();
        }
        if self.take_one_of(&temp).is_some() {
            return Ok(Persistence::Temp);
        }
        Ok(Persistence::Permanent)
    }

    fn group_by_item(&mut self) -> Parse<Expr> {
        self.deeper(Self::group_by_item_inside)
    }

    fn group_by_item_inside(&mut self) -> Parse<Expr> {
        let location = self.location();
        match self.keyword() {
            Some(keyword @ (Keyword::Cube | Keyword::Rollup)) if self.is_char_at(1, b'(') => {
                self.bump();
                let list = self.paren_list(Self::a_expr)?;
                let cube = keyword == Keyword::Cube;
                let kind = if cube { GroupingSetKind::Cube } else { GroupingSetKind::Rollup };
                Ok(Expr { node: Node::GroupingSet(kind, list), location })
            }
            Some(Keyword::Grouping) if self.is_keyword_at(1, Keyword::Sets) => {
                self.bump();
                self.bump();
                let list = self.paren_list(Self::group_by_item)?;
                Ok(Expr { node: Node::GroupingSet(GroupingSetKind::Sets, list), location })
            }
            _ if self.is_char(b'(') && self.is_char_at(1, b')') => {
                self.bump();
                self.bump();
                Ok(Expr { node: Node::GroupingSet(GroupingSetKind::Empty, Vec::new()), location })
            }
            _ => self.a_expr(),
        }
    }
}

pub(super) fn into_of(rel: RangeVar) -> IntoClause {
    IntoClause {
        rel,
        col_names: Vec::new(),
        access_method: None,
        options: Vec::new(),
        on_commit: None,
        table_space_name: None,
        skip_data: false,
    }
}

fn empty_select() -> SimpleSelect {
    SimpleSelect {
        distinct_clause: Distinct::All,
        target_list: Vec::new(),
        into_clause: None,
        from_clause: Vec::new(),
        where_clause: None,
        group_clause: Vec::new(),
        group_distinct: false,
        having_clause: None,
        window_clause: Vec::new(),
    }
}

/// TABLE is SELECT * FROM.
fn table(relation: RangeVar, location: u32) -> SimpleSelect {
    let star = Expr { node: Node::ColumnRef(vec![Field::Star]), location };
    let target = ResTarget { name: None, indirection: Vec::new(), val: Some(star), location };
    SimpleSelect {
        target_list: vec![target],
        from_clause: vec![TableRef::RangeVar(relation)],
        ..empty_select()
    }
}
