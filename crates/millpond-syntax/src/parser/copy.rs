//! COPY.

use super::option::option;
use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::tree::{CopySource, CopyStmt, DefArg, DefElem, Name, Statement, Text};

impl Parser<'_> {
    pub(super) fn copy(&mut self) -> Parse<Statement> {
        self.bump();
        if self.is_char(b'(') {
            return self.copy_query();
        }
        let mut options = Vec::new();
        if self.is_keyword(Keyword::Binary) {
            options.push(self.format("binary"));
        }
        let relation = self.qualified_name()?;
        let attlist = self.opt_column_list()?;
        let is_from = match self.take_one_of(&[Keyword::From, Keyword::To]) {
            Some(keyword) => keyword == Keyword::From,
            None => return Err(self.unexpected()),
        };
        let (is_program, filename) = self.copy_file()?;
        self.copy_delimiter(&mut options)?;
        self.copy_options(&mut options)?;
        let place = self.location();
        let where_clause = self.where_clause()?;
        if where_clause.is_some() && !is_from {
            return Err(self.error_at("WHERE clause not allowed with COPY TO", place));
        }
        let source = CopySource::Relation { relation, attlist };
        let stmt = CopyStmt { source, is_from, is_program, filename, options, where_clause };
        Ok(Statement::Copy(Box::new(stmt)))
    }

    fn copy_query(&mut self) -> Parse<Statement> {
        self.expect_char(b'(')?;
        let query = self.deeper(|parser| parser.raw(Self::preparable))?;
        self.expect_char(b')')?;
        self.expect_keyword(Keyword::To)?;
        let (is_program, filename) = self.copy_file()?;
        let mut options = Vec::new();
        self.copy_options(&mut options)?;
        Ok(Statement::Copy(Box::new(CopyStmt {
            source: CopySource::Query(query),
            is_from: false,
            is_program,
            filename,
            options,
            where_clause: None,
        })))
    }

    fn copy_file(&mut self) -> Parse<(bool, Option<Text>)> {
        let is_program = self.take_keyword(Keyword::Program);
        let place = self.location();
        if self.take_one_of(&[Keyword::Stdin, Keyword::Stdout]).is_some() {
            if is_program {
                return Err(self.error_at("STDIN/STDOUT not allowed with PROGRAM", place));
            }
            return Ok((false, None));
        }
        Ok((is_program, Some(self.string()?)))
    }

    fn format(&mut self, format: &str) -> DefElem {
        let location = self.bump().start;
        option("format".into(), Some(DefArg::String(format.into())), location)
    }

    /// The old spelling: USING DELIMITERS.
    fn copy_delimiter(&mut self, options: &mut Vec<DefElem>) -> Parse<()> {
        let location = self.location();
        let using = self.take_keyword(Keyword::Using);
        if using || self.is_keyword(Keyword::Delimiters) {
            self.expect_keyword(Keyword::Delimiters)?;
            let arg = DefArg::String(self.string()?);
            options.push(option("delimiter".into(), Some(arg), location));
        }
        Ok(())
    }

    fn copy_options(&mut self, options: &mut Vec<DefElem>) -> Parse<()> {
        self.take_keyword(Keyword::With);
        if self.is_char(b'(') {
            options.extend(self.paren_list(Self::copy_generic_option)?);
            return Ok(());
        }
        while let Some(option) = self.copy_option()? {
            options.push(option);
        }
        Ok(())
    }

    fn copy_generic_option(&mut self) -> Parse<DefElem> {
        let location = self.location();
        let name = self.col_label()?;
        let arg = if self.take_char(b'*') {
            Some(DefArg::Star)
        } else if self.is_char(b'(') {
            let list = self.paren_list(Self::boolean_or_string)?;
            Some(DefArg::List(list.into_iter().map(DefArg::String).collect()))
        } else {
            self.opt_value()?
        };
        Ok(option(name, arg, location))
    }

    /// An option in the spelling without parentheses.
    fn copy_option(&mut self) -> Parse<Option<DefElem>> {
        let location = self.location();
        let (name, arg) = match self.keyword() {
            Some(Keyword::Binary) => return Ok(Some(self.format("binary"))),
            Some(Keyword::Csv) => return Ok(Some(self.format("csv"))),
            Some(keyword @ (Keyword::Freeze | Keyword::Header)) => {
                self.bump();
                (keyword.text(), DefArg::Boolean(true))
            }
            Some(
                keyword @ (Keyword::Delimiter | Keyword::Null | Keyword::Quote | Keyword::Escape),
            ) => {
                self.bump();
                self.take_keyword(Keyword::As);
                (keyword.text(), DefArg::String(self.string()?))
            }
            Some(Keyword::Encoding) => {
                self.bump();
                ("encoding", DefArg::String(self.string()?))
            }
            Some(Keyword::Force) => {
                self.bump();
                return self.copy_force(location).map(Some);
            }
            _ => return Ok(None),
        };
        Ok(Some(option(name.into(), Some(arg), location)))
    }

    fn copy_force(&mut self, location: u32) -> Parse<DefElem> {
        let (name, star) = match self.take_one_of(&[Keyword::Quote, Keyword::Null, Keyword::Not]) {
            Some(Keyword::Quote) => ("force_quote", true),
            Some(Keyword::Null) => ("force_null", false),
            Some(_) => {
                self.expect_keyword(Keyword::Null)?;
                ("force_not_null", false)
            }
            None => return Err(self.unexpected()),
        };
        let arg = if star && self.take_char(b'*') {
            DefArg::Star
        } else {
            let names: Vec<Name> = self.name_list()?;
            DefArg::List(names.into_iter().map(DefArg::String).collect())
        };
        Ok(option(name.into(), Some(arg), location))
    }
}
