//! Views, schemas, sequences.

use super::option::option;
use super::select::into_of;
use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::tree::{
    CreateSchemaStmt, CreateSeqStmt, DefArg, DefElem, Persistence, RoleSpec, Statement, Value,
    ViewCheckOption, ViewStmt,
};

impl Parser<'_> {
    pub(super) fn create_view(&mut self) -> Parse<Statement> {
        self.expect_keyword(Keyword::Create)?;
        let replace = self.take_keywords(&[Keyword::Or, Keyword::Replace]);
        let persistence = self.opt_temp()?;
        let recursive = self.take_keyword(Keyword::Recursive);
        self.expect_keyword(Keyword::View)?;
        let mut view = self.qualified_name()?;
        view.relpersistence = persistence;
        if recursive && !self.is_char(b'(') {
            return Err(self.unexpected());
        }
        let aliases = self.opt_column_list()?;
        let options = self.opt_reloptions()?;
        self.expect_keyword(Keyword::As)?;
        let query = self.select_stmt()?;
        let place = self.location();
        let with_check_option = self.opt_check_option()?;
        if recursive && with_check_option.is_some() {
            let message = "WITH CHECK OPTION not supported on recursive views";
            return Err(self.unsupported(message, place));
        }
        Ok(Statement::View(Box::new(ViewStmt {
            view,
            aliases,
            query,
            replace,
            recursive,
            options,
            with_check_option,
        })))
    }

    fn opt_check_option(&mut self) -> Parse<Option<ViewCheckOption>> {
        if !self.take_keyword(Keyword::With) {
            return Ok(None);
        }
        let local = self.take_one_of(&[Keyword::Cascaded, Keyword::Local]) == Some(Keyword::Local);
        self.expect_keywords(&[Keyword::Check, Keyword::Option])?;
        Ok(Some(if local { ViewCheckOption::Local } else { ViewCheckOption::Cascaded }))
    }

    pub(super) fn create_materialized_view(&mut self) -> Parse<Statement> {
        self.expect_keyword(Keyword::Create)?;
        let unlogged = self.take_keyword(Keyword::Unlogged);
        self.expect_keywords(&[Keyword::Materialized, Keyword::View])?;
        let if_not_exists = self.if_not_exists()?;
        let mut view = self.qualified_name()?;
        if unlogged {
            view.relpersistence = Persistence::Unlogged;
        }
        let mut into = into_of(view);
        into.col_names = self.opt_column_list()?;
        into.access_method = self.opt_access_method()?;
        into.options = self.opt_reloptions()?;
        into.table_space_name = self.opt_tablespace()?;
        self.expect_keyword(Keyword::As)?;
        let query = Statement::Select(Box::new(self.select_stmt()?));
        self.finish_table_as(query, into, true, if_not_exists)
    }

    pub(super) fn create_schema(&mut self) -> Parse<Statement> {
        let start = self.at;
        self.expect_keywords(&[Keyword::Create, Keyword::Schema])?;
        let if_not_exists = self.if_not_exists()?;
        let schemaname =
            if self.is_keyword(Keyword::Authorization) { None } else { Some(self.col_id()?) };
        let authrole =
            if self.take_keyword(Keyword::Authorization) { Some(self.role_spec()?) } else { None };
        let place = self.location();
        let mut schema_elts = Vec::new();
        while matches!(self.keyword(), Some(Keyword::Create | Keyword::Grant)) {
            let grant = self.is_keyword(Keyword::Grant);
            if grant || !self.is_schema_element() {
                // Elements without a tree: the statement has none.
                self.at = start;
                return self.other();
            }
            if if_not_exists {
                let message = "CREATE SCHEMA IF NOT EXISTS cannot include schema elements";
                return Err(self.unsupported(message, place));
            }
            schema_elts.push(self.deeper(Self::statement)?);
        }
        let stmt = CreateSchemaStmt { schemaname, authrole, schema_elts, if_not_exists };
        Ok(Statement::CreateSchema(Box::new(stmt)))
    }

    fn is_schema_element(&self) -> bool {
        let modifiers = [
            Keyword::Temp,
            Keyword::Temporary,
            Keyword::Unlogged,
            Keyword::Local,
            Keyword::Global,
            Keyword::Unique,
            Keyword::Or,
            Keyword::Replace,
            Keyword::Recursive,
        ];
        let mut ahead = 1;
        while self.keyword_at(ahead).is_some_and(|keyword| modifiers.contains(&keyword)) {
            ahead += 1;
        }
        matches!(
            self.keyword_at(ahead),
            Some(Keyword::Table | Keyword::View | Keyword::Index | Keyword::Sequence)
        )
    }

    fn role_spec(&mut self) -> Parse<RoleSpec> {
        let words = [Keyword::CurrentRole, Keyword::CurrentUser, Keyword::SessionUser];
        match self.take_one_of(&words) {
            Some(Keyword::CurrentRole) => return Ok(RoleSpec::CurrentRole),
            Some(Keyword::CurrentUser) => return Ok(RoleSpec::CurrentUser),
            Some(_) => return Ok(RoleSpec::SessionUser),
            None => {}
        }
        let quoted = !matches!(
            self.kind(),
            crate::lexer::TokenKind::Ident | crate::lexer::TokenKind::Keyword(_)
        );
        let token = self.token(0);
        let name = self.non_reserved_word()?;
        if &*name == "public" && !quoted {
            return Ok(RoleSpec::Public);
        }
        if &*name == "none" {
            let error = self.error_at("role name \"none\" is reserved", token.start);
            return Err(error.with_code(crate::error::SqlState::ReservedName));
        }
        Ok(RoleSpec::Name(name))
    }

    pub(super) fn create_sequence(&mut self) -> Parse<Statement> {
        self.expect_keyword(Keyword::Create)?;
        let persistence = self.opt_temp()?;
        self.expect_keyword(Keyword::Sequence)?;
        let if_not_exists = self.if_not_exists()?;
        let mut sequence = self.qualified_name()?;
        sequence.relpersistence = persistence;
        let options = self.sequence_options()?;
        let stmt = CreateSeqStmt { sequence, options, if_not_exists };
        Ok(Statement::CreateSeq(Box::new(stmt)))
    }

    pub(super) fn sequence_options(&mut self) -> Parse<Vec<DefElem>> {
        let mut options = Vec::new();
        while let Some(option) = self.sequence_option()? {
            options.push(option);
        }
        Ok(options)
    }

    fn sequence_option(&mut self) -> Parse<Option<DefElem>> {
        let location = self.location();
        let words = [
            Keyword::As,
            Keyword::Cache,
            Keyword::Cycle,
            Keyword::No,
            Keyword::Increment,
            Keyword::Maxvalue,
            Keyword::Minvalue,
            Keyword::Owned,
            Keyword::Sequence,
            Keyword::Start,
            Keyword::Restart,
        ];
        let Some(word) = self.take_one_of(&words) else { return Ok(None) };
        let (name, arg) = match word {
            Keyword::As => ("as", Some(DefArg::TypeName(self.type_name()?))),
            Keyword::Cycle => ("cycle", Some(DefArg::Boolean(true))),
            Keyword::No => {
                let no = [Keyword::Maxvalue, Keyword::Minvalue, Keyword::Cycle];
                match self.take_one_of(&no) {
                    Some(Keyword::Cycle) => ("cycle", Some(DefArg::Boolean(false))),
                    Some(word) => (word.text(), None),
                    None => return Err(self.unexpected()),
                }
            }
            Keyword::Owned => {
                self.expect_keyword(Keyword::By)?;
                ("owned_by", Some(self.name_arg()?))
            }
            Keyword::Sequence => {
                self.expect_keyword(Keyword::Name)?;
                ("sequence_name", Some(self.name_arg()?))
            }
            Keyword::Restart if !self.is_restart_value() => ("restart", None),
            word => {
                match word {
                    Keyword::Increment => self.take_keyword(Keyword::By),
                    Keyword::Start | Keyword::Restart => self.take_keyword(Keyword::With),
                    _ => false,
                };
                let arg = match self.numeric_only()? {
                    Value::Integer(integer) => DefArg::Integer(integer),
                    Value::Float(text) => DefArg::Float(text),
                    _ => return Err(self.unexpected()),
                };
                (word.text(), Some(arg))
            }
        };
        Ok(Some(option(name.into(), arg, location)))
    }

    /// Whether a value follows RESTART.
    fn is_restart_value(&self) -> bool {
        use crate::lexer::TokenKind::{Char, Float, Integer};
        self.is_keyword(Keyword::With) || matches!(self.kind(), Integer | Float | Char(b'+' | b'-'))
    }

    fn name_arg(&mut self) -> Parse<DefArg> {
        let names = self.any_name()?;
        Ok(DefArg::List(names.into_iter().map(DefArg::String).collect()))
    }
}
