//! FROM.

use super::paren::Paren;
use super::{Parse, Parser};
use crate::keyword::{Category, Keyword};
use crate::lexer::TokenKind;
use crate::tree::{
    Alias, ColumnDefinition, Expr, JoinExpr, JoinType, Name, RangeFunction, RangeSubselect,
    RangeTableSample, RangeVar, SelectBody, SelectStmt, TableRef,
};

/// What parentheses in FROM hold.
enum FromParen {
    Select(Box<SelectStmt>),
    /// A join, always.
    Table(TableRef),
}

impl Parser<'_> {
    pub(super) fn table_ref(&mut self) -> Parse<TableRef> {
        self.deeper(|parser| {
            let first = parser.table_primary()?;
            parser.joins(first)
        })
    }

    /// The joins behind a first table.
    fn joins(&mut self, first: TableRef) -> Parse<TableRef> {
        let mut left = first;
        let mut steps = 0;
        while let Some(ahead) = self.is_join() {
            self.spend(1)?;
            steps += 1;
            left = self.join(left, ahead)?;
        }
        self.give_back(steps);
        Ok(left)
    }

    /// Whether a join's words are here.
    fn is_join(&self) -> Option<Keyword> {
        self.keyword().filter(|keyword| {
            matches!(
                keyword,
                Keyword::Join
                    | Keyword::Inner
                    | Keyword::Left
                    | Keyword::Right
                    | Keyword::Full
                    | Keyword::Cross
                    | Keyword::Natural
            )
        })
    }

    fn join(&mut self, larg: TableRef, first: Keyword) -> Parse<TableRef> {
        let mut location = self.location();
        let cross = first == Keyword::Cross;
        let natural = first == Keyword::Natural;
        if cross || natural {
            self.bump();
            location = if natural { self.location() } else { location };
        }
        let jointype = if cross { JoinType::Inner } else { self.join_type() };
        self.expect_keyword(Keyword::Join)?;
        let mut join = JoinExpr {
            jointype,
            is_natural: natural,
            larg,
            rarg: self.table_primary()?,
            using_clause: Vec::new(),
            join_using_alias: None,
            quals: None,
            alias: None,
            location,
        };
        if cross || natural {
            return Ok(TableRef::Join(Box::new(join)));
        }
        // Joins in front of this one's condition belong to its right side.
        if self.is_join().is_some() {
            let JoinExpr { rarg, .. } = join;
            let rarg = self.deeper(|parser| parser.joins(rarg))?;
            join = JoinExpr { rarg, ..join };
        }
        self.join_qual(&mut join)?;
        Ok(TableRef::Join(Box::new(join)))
    }

    fn join_type(&mut self) -> JoinType {
        let outer = [Keyword::Left, Keyword::Right, Keyword::Full, Keyword::Inner];
        let jointype = match self.take_one_of(&outer) {
            Some(Keyword::Left) => JoinType::Left,
            Some(Keyword::Right) => JoinType::Right,
            Some(Keyword::Full) => JoinType::Full,
            _ => return JoinType::Inner,
        };
        self.take_keyword(Keyword::Outer);
        jointype
    }

    fn join_qual(&mut self, join: &mut JoinExpr) -> Parse<()> {
        if self.take_keyword(Keyword::On) {
            join.quals = Some(self.a_expr()?);
            return Ok(());
        }
        self.expect_keyword(Keyword::Using)?;
        join.using_clause = self.paren_list(Self::col_id)?;
        if self.take_keyword(Keyword::As) {
            join.join_using_alias = Some(self.col_id()?);
        }
        Ok(())
    }

    /// A table, a function or a subquery, with its alias.
    fn table_primary(&mut self) -> Parse<TableRef> {
        let lateral = self.take_keyword(Keyword::Lateral);
        if self.is_char(b'(') {
            return self.paren_table(lateral);
        }
        if self.is_keyword(Keyword::Xmltable) && self.is_char_at(1, b'(') {
            let mut table = self.xml_table(lateral)?;
            table.alias = self.opt_alias()?;
            return Ok(TableRef::TableFunc(Box::new(table)));
        }
        if self.are_keywords(&[Keyword::Rows, Keyword::From]) && self.is_char_at(2, b'(') {
            return self.rows_from(lateral);
        }
        if self.is_function() {
            let location = self.location();
            let function = self.func_expr_windowless()?;
            return self.range_function(vec![(function, Vec::new())], false, lateral, location);
        }
        if lateral {
            return Err(self.unexpected());
        }
        // A function's name without parentheses: what follows is wrong.
        if self.keyword().is_some_and(|word| word.category() == Category::TypeFuncName) {
            return Err(self.unexpected_at(1));
        }
        let mut relation = self.relation_expr()?;
        relation.alias = self.opt_alias()?;
        if self.is_keyword(Keyword::Tablesample) {
            return self.table_sample(relation);
        }
        Ok(TableRef::RangeVar(relation))
    }

    fn paren_table(&mut self, lateral: bool) -> Parse<TableRef> {
        let location = self.location();
        if lateral {
            let query = self.select_with_parens()?;
            return self.subselect(query, true, location);
        }
        match self.table_paren()? {
            FromParen::Select(query) => self.subselect(*query, false, location),
            FromParen::Table(table) => self.aliased_join(table),
        }
    }

    /// A join in parentheses may have an alias.
    fn aliased_join(&mut self, table: TableRef) -> Parse<TableRef> {
        let alias = self.opt_alias()?;
        match table {
            TableRef::Join(mut join) => {
                if alias.is_some() {
                    join.alias = alias;
                }
                Ok(TableRef::Join(join))
            }
            other => Ok(other),
        }
    }

    fn table_paren(&mut self) -> Parse<FromParen> {
        self.deeper(Self::tables_in_parens)
    }

    fn tables_in_parens(&mut self) -> Parse<FromParen> {
        if self.is_select_at(1) {
            return match self.paren()? {
                Paren::Select(select) => Ok(FromParen::Select(select)),
                Paren::List(_) => Err(self.unexpected()),
            };
        }
        self.expect_char(b'(')?;
        let first = if self.is_char(b'(') {
            let location = self.location();
            match self.table_paren()? {
                FromParen::Select(select) if self.continues_select() => {
                    let select = self.rest_of_select(*select)?;
                    self.expect_char(b')')?;
                    return Ok(FromParen::Select(Box::new(select)));
                }
                FromParen::Select(select) if self.take_char(b')') => {
                    return Ok(FromParen::Select(select));
                }
                FromParen::Select(select) => self.subselect(*select, false, location)?,
                FromParen::Table(table) => self.aliased_join(table)?,
            }
        } else {
            self.table_primary()?
        };
        let was_join = matches!(first, TableRef::Join(_));
        if self.is_join().is_none() && !was_join {
            return Err(self.unexpected());
        }
        let table = self.joins(first)?;
        self.expect_char(b')')?;
        Ok(FromParen::Table(table))
    }

    fn subselect(&mut self, subquery: SelectStmt, lateral: bool, location: u32) -> Parse<TableRef> {
        let alias = self.opt_alias()?;
        if alias.is_none() {
            let simple_values = matches!(subquery.body, SelectBody::Values(_));
            let error = if simple_values {
                self.error_at("VALUES in FROM must have an alias", location)
                    .with_hint("For example, FROM (VALUES ...) [AS] foo.")
            } else {
                self.error_at("subquery in FROM must have an alias", location)
                    .with_hint("For example, FROM (SELECT ...) [AS] foo.")
            };
            return Err(error);
        }
        let subselect = RangeSubselect { lateral, subquery, alias, location };
        Ok(TableRef::Subselect(Box::new(subselect)))
    }

    /// Whether a call is here, and no relation.
    fn is_function(&self) -> bool {
        if let Some(keyword) = self.keyword() {
            if self.is_special_call(keyword) {
                return true;
            }
            if keyword.category() == Category::TypeFuncName {
                return self.is_char_at(1, b'(');
            }
        }
        let mut ahead = 0;
        if !self.is_col_id_at(0) {
            return false;
        }
        while self.is_char_at(ahead + 1, b'.')
            && matches!(
                self.kind_at(ahead + 2),
                TokenKind::Ident
                    | TokenKind::QuotedIdent
                    | TokenKind::UnicodeIdent
                    | TokenKind::Keyword(_)
            )
        {
            ahead += 2;
        }
        self.is_char_at(ahead + 1, b'(') && (ahead > 0 || self.is_type_function_name_at(0))
    }

    /// A call without FILTER and OVER.
    pub(super) fn func_expr_windowless(&mut self) -> Parse<Expr> {
        let location = self.location();
        if let Some(keyword) = self.keyword().filter(|&keyword| self.is_special_call(keyword)) {
            return self.special_call(keyword);
        }
        let mut names = vec![if self.is_col_id() || self.is_type_function_name_at(0) {
            self.take_name()?
        } else {
            return Err(self.unexpected());
        }];
        self.attrs(&mut names)?;
        let call = self.func_application(names)?;
        Ok(Expr { node: crate::tree::Node::FuncCall(Box::new(call)), location })
    }

    fn rows_from(&mut self, lateral: bool) -> Parse<TableRef> {
        let location = self.bump().start;
        self.bump();
        let functions = self.paren_list(|parser| {
            let function = parser.func_expr_windowless()?;
            let mut columns = Vec::new();
            if parser.take_keyword(Keyword::As) {
                columns = parser.paren_list(Self::column_definition)?;
            }
            Ok((function, columns))
        })?;
        self.range_function(functions, true, lateral, location)
    }

    fn range_function(
        &mut self,
        functions: Vec<(Expr, Vec<ColumnDefinition>)>,
        is_rowsfrom: bool,
        lateral: bool,
        location: u32,
    ) -> Parse<TableRef> {
        let ordinality = self.take_keywords(&[Keyword::With, Keyword::Ordinality]);
        let (alias, coldeflist) = self.func_alias()?;
        let function = RangeFunction {
            lateral,
            ordinality,
            is_rowsfrom,
            functions,
            alias,
            coldeflist,
            location,
        };
        Ok(TableRef::Function(Box::new(function)))
    }

    /// A function's alias: names of columns may have types.
    fn func_alias(&mut self) -> Parse<(Option<Alias>, Vec<ColumnDefinition>)> {
        let with_as = self.take_keyword(Keyword::As);
        if with_as && self.is_char(b'(') {
            return Ok((None, self.paren_list(Self::column_definition)?));
        }
        if !with_as && !self.is_col_id() {
            return Ok((None, Vec::new()));
        }
        let aliasname = self.col_id()?;
        let typed = self.is_char(b'(')
            && self.is_col_id_at(1)
            && !self.is_char_at(2, b',')
            && !self.is_char_at(2, b')');
        if typed {
            let columns = self.paren_list(Self::column_definition)?;
            return Ok((Some(Alias { aliasname, colnames: Vec::new() }), columns));
        }
        let colnames = self.opt_column_list()?;
        Ok((Some(Alias { aliasname, colnames }), Vec::new()))
    }

    fn column_definition(&mut self) -> Parse<ColumnDefinition> {
        let location = self.location();
        let colname = self.col_id()?;
        let type_name = self.type_name()?;
        let coll_clause =
            if self.take_keyword(Keyword::Collate) { Some(self.any_name()?) } else { None };
        Ok(ColumnDefinition { colname, type_name, coll_clause, location })
    }

    pub(super) fn opt_alias(&mut self) -> Parse<Option<Alias>> {
        if !self.take_keyword(Keyword::As) && !self.is_col_id() {
            return Ok(None);
        }
        let aliasname = self.col_id()?;
        let colnames: Vec<Name> = self.opt_column_list()?;
        Ok(Some(Alias { aliasname, colnames }))
    }

    fn table_sample(&mut self, relation: RangeVar) -> Parse<TableRef> {
        self.bump();
        let location = self.location();
        let mut method = vec![if self.is_col_id() || self.is_type_function_name_at(0) {
            self.take_name()?
        } else {
            return Err(self.unexpected());
        }];
        self.attrs(&mut method)?;
        let args = self.paren_list(Self::a_expr)?;
        let mut repeatable = None;
        if self.take_keyword(Keyword::Repeatable) {
            self.expect_char(b'(')?;
            repeatable = Some(self.a_expr()?);
            self.expect_char(b')')?;
        }
        let sample = RangeTableSample { relation, method, args, repeatable, location };
        Ok(TableRef::TableSample(Box::new(sample)))
    }

    /// A relation with ONLY or a star.
    pub(super) fn relation_expr(&mut self) -> Parse<RangeVar> {
        if self.take_keyword(Keyword::Only) {
            let mut relation = if self.take_char(b'(') {
                let relation = self.qualified_name()?;
                self.expect_char(b')')?;
                relation
            } else {
                self.qualified_name()?
            };
            relation.inh = false;
            return Ok(relation);
        }
        let relation = self.qualified_name()?;
        self.take_char(b'*');
        Ok(relation)
    }
}
