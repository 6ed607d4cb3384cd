//! ALTER TABLE.

use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::tree::{AlterTableCmd, AlterTableStmt, Statement};

impl Parser<'_> {
    /// A statement with a change that has no tree is checked as a whole where such statements are.
    pub(super) fn alter_table(&mut self) -> Parse<Statement> {
        let start = self.at;
        self.expect_keywords(&[Keyword::Alter, Keyword::Table])?;
        if self.is_keyword(Keyword::All) {
            self.at = start;
            return self.other();
        }
        let missing_ok = self.take_keywords(&[Keyword::If, Keyword::Exists]);
        let relation = self.relation_expr()?;
        let mut cmds = Vec::new();
        loop {
            match self.alter_table_cmd()? {
                Some(cmd) => cmds.push(cmd),
                // There must be one.
                None if self.keyword().is_none() => return Err(self.unexpected()),
                None => {
                    cmds.push(AlterTableCmd::Other(self.change_words()));
                    self.at = start;
                    self.other()?;
                    break;
                }
            }
            if !self.take_char(b',') {
                break;
            }
        }
        Ok(Statement::AlterTable(Box::new(AlterTableStmt { relation, missing_ok, cmds })))
    }

    fn alter_table_cmd(&mut self) -> Parse<Option<AlterTableCmd>> {
        if self.are_keywords(&[Keyword::Drop, Keyword::Constraint]) {
            self.bump();
            self.bump();
            let missing_ok = self.take_keywords(&[Keyword::If, Keyword::Exists]);
            let name = self.col_id()?;
            let behavior = self.opt_drop_behavior();
            return Ok(Some(AlterTableCmd::DropConstraint { name, behavior, missing_ok }));
        }
        if !self.is_keyword(Keyword::Add) {
            return Ok(None);
        }
        self.bump();
        if self.is_table_constraint() {
            let constraint = self.table_constraint()?;
            return Ok(Some(AlterTableCmd::AddConstraint(Box::new(constraint))));
        }
        self.at -= 1;
        Ok(None)
    }

    /// The words that a change begins with. COLUMN may be left out.
    fn change_words(&self) -> String {
        let Some(verb) = self.keyword() else { return String::new() };
        let columns = [Keyword::Add, Keyword::Alter, Keyword::Drop];
        let second = match self.keyword_at(1) {
            Some(second) => second.text(),
            None if columns.contains(&verb) => Keyword::Column.text(),
            None => "",
        };
        format!("{} {second}", verb.text()).trim_end().to_uppercase()
    }
}
