//! CREATE TABLE.

use super::select::into_of;
use super::{Parse, Parser};
use crate::error::SqlState;
use crate::keyword::Keyword;
use crate::tree::{
    ColumnDef, CreateStmt, CreateTableAsStmt, IntoClause, OnCommitAction, PartitionBoundSpec,
    PartitionSpec, QualifiedName, RangeVar, Statement, TableElement, TableLikeClause,
    TableLikeOption,
};

impl Parser<'_> {
    pub(super) fn create_table(&mut self) -> Parse<Statement> {
        self.expect_keyword(Keyword::Create)?;
        let persistence = self.opt_temp()?;
        self.expect_keyword(Keyword::Table)?;
        let if_not_exists = self.if_not_exists()?;
        let mut relation = self.qualified_name()?;
        relation.relpersistence = persistence;
        if self.take_keyword(Keyword::Of) {
            return self.create_typed(relation, if_not_exists);
        }
        if self.take_keyword(Keyword::Partition) {
            return self.create_partition(relation, if_not_exists);
        }
        if !self.is_char(b'(') || self.is_column_names() {
            return self.create_table_as(relation, if_not_exists);
        }
        let mut stmt = empty_create(relation, if_not_exists);
        self.expect_char(b'(')?;
        if !self.is_char(b')') {
            stmt.table_elts = self.list(Self::table_element)?;
        }
        self.expect_char(b')')?;
        if self.take_keyword(Keyword::Inherits) {
            stmt.inh_relations = self.paren_list(Self::qualified_name)?;
        }
        self.table_options(&mut stmt)?;
        Ok(Statement::Create(Box::new(stmt)))
    }

    pub(super) fn if_not_exists(&mut self) -> Parse<bool> {
        if !self.are_keywords(&[Keyword::If, Keyword::Not]) {
            return Ok(false);
        }
        self.expect_keywords(&[Keyword::If, Keyword::Not, Keyword::Exists])?;
        Ok(true)
    }

    /// Whether the parenthesis here has names alone, as CREATE TABLE AS has.
    fn is_column_names(&self) -> bool {
        self.is_col_id_at(1) && (self.is_char_at(2, b',') || self.is_char_at(2, b')'))
    }

    fn create_table_as(&mut self, relation: RangeVar, if_not_exists: bool) -> Parse<Statement> {
        let mut into = into_of(relation);
        into.col_names = self.opt_column_list()?;
        into.access_method = self.opt_access_method()?;
        into.options = self.opt_with_options()?;
        into.on_commit = self.opt_on_commit()?;
        into.table_space_name = self.opt_tablespace()?;
        self.expect_keyword(Keyword::As)?;
        let query = if self.is_keyword(Keyword::Execute) {
            self.execute()?
        } else {
            Statement::Select(Box::new(self.select_stmt()?))
        };
        self.finish_table_as(query, into, false, if_not_exists)
    }

    pub(super) fn finish_table_as(
        &mut self,
        query: Statement,
        mut into: IntoClause,
        matview: bool,
        if_not_exists: bool,
    ) -> Parse<Statement> {
        into.skip_data = self.opt_no_data()?;
        let stmt = CreateTableAsStmt { query, into, matview, if_not_exists };
        Ok(Statement::CreateTableAs(Box::new(stmt)))
    }

    fn opt_no_data(&mut self) -> Parse<bool> {
        if !self.take_keyword(Keyword::With) {
            return Ok(false);
        }
        let no = self.take_keyword(Keyword::No);
        self.expect_keyword(Keyword::Data)?;
        Ok(no)
    }

    fn create_typed(&mut self, relation: RangeVar, if_not_exists: bool) -> Parse<Statement> {
        let mut stmt = empty_create(relation, if_not_exists);
        let location = self.location();
        stmt.of_typename = Some(QualifiedName { names: self.any_name()?, location });
        stmt.table_elts = self.opt_typed_elements()?;
        self.table_options(&mut stmt)?;
        Ok(Statement::Create(Box::new(stmt)))
    }

    fn create_partition(&mut self, relation: RangeVar, if_not_exists: bool) -> Parse<Statement> {
        self.expect_keyword(Keyword::Of)?;
        let mut stmt = empty_create(relation, if_not_exists);
        stmt.inh_relations = vec![self.qualified_name()?];
        stmt.table_elts = self.opt_typed_elements()?;
        stmt.partbound = Some(self.partition_bound()?);
        self.table_options(&mut stmt)?;
        Ok(Statement::Create(Box::new(stmt)))
    }

    /// What comes behind the elements of all kinds of tables.
    fn table_options(&mut self, stmt: &mut CreateStmt) -> Parse<()> {
        if self.is_keyword(Keyword::Partition) {
            stmt.partspec = Some(self.partition_spec()?);
        }
        stmt.access_method = self.opt_access_method()?;
        stmt.options = self.opt_with_options()?;
        stmt.oncommit = self.opt_on_commit()?;
        stmt.tablespacename = self.opt_tablespace()?;
        Ok(())
    }

    pub(super) fn opt_access_method(&mut self) -> Parse<Option<crate::tree::Name>> {
        if self.take_keyword(Keyword::Using) { Ok(Some(self.col_id()?)) } else { Ok(None) }
    }

    fn opt_with_options(&mut self) -> Parse<Vec<crate::tree::DefElem>> {
        if self.take_keyword(Keyword::Without) {
            self.expect_keyword(Keyword::Oids)?;
            return Ok(Vec::new());
        }
        self.opt_reloptions()
    }

    pub(super) fn opt_reloptions(&mut self) -> Parse<Vec<crate::tree::DefElem>> {
        if !self.take_keyword(Keyword::With) {
            return Ok(Vec::new());
        }
        self.definition(true)
    }

    fn opt_on_commit(&mut self) -> Parse<Option<OnCommitAction>> {
        if !self.take_keyword(Keyword::On) {
            return Ok(None);
        }
        self.expect_keyword(Keyword::Commit)?;
        let words = [Keyword::Drop, Keyword::Delete, Keyword::Preserve];
        let action = match self.take_one_of(&words) {
            Some(Keyword::Drop) => return Ok(Some(OnCommitAction::Drop)),
            Some(Keyword::Delete) => OnCommitAction::DeleteRows,
            Some(_) => OnCommitAction::PreserveRows,
            None => return Err(self.unexpected()),
        };
        self.expect_keyword(Keyword::Rows)?;
        Ok(Some(action))
    }

    pub(super) fn opt_tablespace(&mut self) -> Parse<Option<crate::tree::Name>> {
        if self.take_keyword(Keyword::Tablespace) { Ok(Some(self.col_id()?)) } else { Ok(None) }
    }

    fn table_element(&mut self) -> Parse<TableElement> {
        if self.is_keyword(Keyword::Like) {
            return Ok(TableElement::Like(Box::new(self.table_like()?)));
        }
        if self.is_table_constraint() {
            return Ok(TableElement::Constraint(Box::new(self.table_constraint()?)));
        }
        Ok(TableElement::Column(Box::new(self.column_def()?)))
    }

    fn column_def(&mut self) -> Parse<ColumnDef> {
        let location = self.location();
        let colname = self.col_id()?;
        let type_name = Some(self.type_name()?);
        let compression = if self.take_keyword(Keyword::Compression) {
            if self.take_keyword(Keyword::Default) {
                Some("default".into())
            } else {
                Some(self.col_id()?)
            }
        } else {
            None
        };
        let fdwoptions = self.opt_generic_options()?;
        let mut column = ColumnDef {
            colname,
            type_name,
            compression,
            fdwoptions,
            coll_clause: None,
            constraints: Vec::new(),
            location,
        };
        self.column_constraints(&mut column)?;
        Ok(column)
    }

    fn opt_typed_elements(&mut self) -> Parse<Vec<TableElement>> {
        if !self.is_char(b'(') {
            return Ok(Vec::new());
        }
        self.paren_list(|parser| {
            if parser.is_table_constraint() {
                return Ok(TableElement::Constraint(Box::new(parser.table_constraint()?)));
            }
            let location = parser.location();
            let mut column = ColumnDef {
                colname: parser.col_id()?,
                type_name: None,
                compression: None,
                fdwoptions: Vec::new(),
                coll_clause: None,
                constraints: Vec::new(),
                location,
            };
            if parser.take_keyword(Keyword::With) {
                parser.expect_keyword(Keyword::Options)?;
            }
            parser.column_constraints(&mut column)?;
            Ok(TableElement::Column(Box::new(column)))
        })
    }

    fn table_like(&mut self) -> Parse<TableLikeClause> {
        self.bump();
        let relation = self.qualified_name()?;
        let mut options = Vec::new();
        while let Some(word) = self.take_one_of(&[Keyword::Including, Keyword::Excluding]) {
            let option = match self.keyword() {
                Some(Keyword::Comments) => TableLikeOption::Comments,
                Some(Keyword::Compression) => TableLikeOption::Compression,
                Some(Keyword::Constraints) => TableLikeOption::Constraints,
                Some(Keyword::Defaults) => TableLikeOption::Defaults,
                Some(Keyword::Generated) => TableLikeOption::Generated,
                Some(Keyword::Identity) => TableLikeOption::Identity,
                Some(Keyword::Indexes) => TableLikeOption::Indexes,
                Some(Keyword::Statistics) => TableLikeOption::Statistics,
                Some(Keyword::Storage) => TableLikeOption::Storage,
                Some(Keyword::All) => TableLikeOption::All,
                _ => return Err(self.unexpected()),
            };
            self.bump();
            options.push((option, word == Keyword::Including));
        }
        Ok(TableLikeClause { relation, options })
    }

    fn partition_spec(&mut self) -> Parse<PartitionSpec> {
        let location = self.bump().start;
        self.expect_keyword(Keyword::By)?;
        let strategy = self.col_id()?;
        let part_params = self.paren_list(Self::part_elem)?;
        Ok(PartitionSpec { strategy, part_params, location })
    }

    fn partition_bound(&mut self) -> Parse<PartitionBoundSpec> {
        if self.take_keyword(Keyword::Default) {
            return Ok(PartitionBoundSpec::Default);
        }
        self.expect_keyword(Keyword::For)?;
        self.expect_keyword(Keyword::Values)?;
        match self.take_one_of(&[Keyword::With, Keyword::In, Keyword::From]) {
            Some(Keyword::With) => self.hash_bound(),
            Some(Keyword::In) => Ok(PartitionBoundSpec::List(self.paren_list(Self::a_expr)?)),
            Some(_) => {
                let lowerdatums = self.paren_list(Self::a_expr)?;
                self.expect_keyword(Keyword::To)?;
                let upperdatums = self.paren_list(Self::a_expr)?;
                Ok(PartitionBoundSpec::Range { lowerdatums, upperdatums })
            }
            None => Err(self.unexpected()),
        }
    }

    fn hash_bound(&mut self) -> Parse<PartitionBoundSpec> {
        let start = self.location();
        let parts = self.paren_list(|parser| {
            let location = parser.location();
            Ok((parser.non_reserved_word()?, parser.iconst()?, location))
        })?;
        let (mut modulus, mut remainder) = (None, None);
        for (name, value, location) in parts {
            let slot = match &*name {
                "modulus" => &mut modulus,
                "remainder" => &mut remainder,
                _ => {
                    let message =
                        format!("unrecognized hash partition bound specification \"{name}\"");
                    return Err(self.error_at(message, location));
                }
            };
            if slot.replace(value).is_some() {
                let message = format!("{name} for hash partition provided more than once");
                let error = self.error_at(message, location);
                return Err(error.with_code(SqlState::DuplicateObject));
            }
        }
        match (modulus, remainder) {
            (Some(modulus), Some(remainder)) => Ok(PartitionBoundSpec::Hash { modulus, remainder }),
            (None, _) => Err(self.error_at("modulus for hash partition must be specified", start)),
            (_, None) => {
                Err(self.error_at("remainder for hash partition must be specified", start))
            }
        }
    }
}

fn empty_create(relation: RangeVar, if_not_exists: bool) -> CreateStmt {
    CreateStmt {
        relation,
        table_elts: Vec::new(),
        inh_relations: Vec::new(),
        partbound: None,
        partspec: None,
        of_typename: None,
        options: Vec::new(),
        oncommit: None,
        tablespacename: None,
        access_method: None,
        if_not_exists,
    }
}
