//! Which statement a word begins.

use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::tree::Statement;

impl Parser<'_> {
    pub(super) fn statement(&mut self) -> Parse<Statement> {
        let Some(keyword) = self.keyword() else {
            if self.is_char(b'(') {
                return self.preparable();
            }
            return Err(self.unexpected());
        };
        match keyword {
            Keyword::Select
            | Keyword::Values
            | Keyword::Table
            | Keyword::Insert
            | Keyword::Update
            | Keyword::Delete
            | Keyword::Merge
            | Keyword::With => self.preparable(),
            Keyword::Explain => self.explain(),
            Keyword::Copy => self.copy(),
            Keyword::Prepare if self.is_keyword_at(1, Keyword::Transaction) => self.transaction(),
            Keyword::Prepare => self.prepare(),
            Keyword::Execute => self.execute(),
            Keyword::Deallocate => self.deallocate(),
            Keyword::Declare => self.declare_cursor(),
            Keyword::Fetch | Keyword::Move => self.fetch(),
            Keyword::Close => self.close(),
            Keyword::Abort
            | Keyword::Begin
            | Keyword::Commit
            | Keyword::End
            | Keyword::Release
            | Keyword::Rollback
            | Keyword::Savepoint
            | Keyword::Start => self.transaction(),
            Keyword::Set if !self.is_keyword_at(1, Keyword::Constraints) => self.variable_set(),
            Keyword::Reset => self.variable_reset(),
            Keyword::Show => self.variable_show(),
            Keyword::Lock => self.lock(),
            Keyword::Truncate => self.truncate(),
            Keyword::Vacuum | Keyword::Analyze | Keyword::Analyse => self.vacuum(),
            Keyword::Checkpoint => {
                self.bump();
                Ok(Statement::Checkpoint)
            }
            Keyword::Reindex => self.reindex(),
            Keyword::Discard => self.discard(),
            Keyword::Listen | Keyword::Unlisten | Keyword::Notify => self.notify(keyword),
            Keyword::Create => self.create(),
            Keyword::Drop => self.drop(),
            Keyword::Alter if self.is_keyword_at(1, Keyword::Table) => self.alter_table(),
            Keyword::Alter if self.is_keyword_at(1, Keyword::System) => self.alter_system(),
            _ => self.other(),
        }
    }

    fn create(&mut self) -> Parse<Statement> {
        let mut ahead = 1;
        let replace = self.is_keyword_at(1, Keyword::Or);
        if replace {
            if !self.is_keyword_at(2, Keyword::Replace) {
                return Err(self.unexpected_at(2));
            }
            ahead = 3;
        }
        while matches!(
            self.keyword_at(ahead),
            Some(
                Keyword::Temp
                    | Keyword::Temporary
                    | Keyword::Local
                    | Keyword::Global
                    | Keyword::Unlogged
            )
        ) {
            ahead += 1;
        }
        match self.keyword_at(ahead) {
            Some(Keyword::View) => self.create_view(),
            Some(Keyword::Recursive) if self.is_keyword_at(ahead + 1, Keyword::View) => {
                self.create_view()
            }
            _ if replace => self.other(),
            Some(Keyword::Table) => self.create_table(),
            Some(Keyword::Sequence) => self.create_sequence(),
            Some(Keyword::Materialized) if self.is_keyword_at(ahead + 1, Keyword::View) => {
                self.create_materialized_view()
            }
            Some(Keyword::Index) => self.create_index(),
            Some(Keyword::Unique) if self.is_keyword_at(ahead + 1, Keyword::Index) => {
                self.create_index()
            }
            Some(Keyword::Schema) => self.create_schema(),
            _ => self.other(),
        }
    }
}
