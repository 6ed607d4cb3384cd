//! DROP of what a name alone identifies.

use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::tree::{DropStmt, ObjectType, QualifiedName, Statement};

impl Parser<'_> {
    pub(super) fn drop(&mut self) -> Parse<Statement> {
        let Some((remove_type, words)) = self.drop_object() else { return self.other() };
        for _ in 0..=words {
            self.bump();
        }
        let concurrent =
            remove_type == ObjectType::Index && self.take_keyword(Keyword::Concurrently);
        let missing_ok = self.take_keywords(&[Keyword::If, Keyword::Exists]);
        let objects = match remove_type {
            ObjectType::Type | ObjectType::Domain => self.list(Self::type_as_name)?,
            ObjectType::Schema => self.list(|parser| {
                let location = parser.location();
                Ok(QualifiedName { names: vec![parser.col_id()?], location })
            })?,
            _ => self.list(Self::qualified)?,
        };
        let behavior = self.opt_drop_behavior();
        let stmt = DropStmt { remove_type, objects, behavior, missing_ok, concurrent };
        Ok(Statement::Drop(Box::new(stmt)))
    }

    fn type_as_name(&mut self) -> Parse<QualifiedName> {
        let type_name = self.type_name()?;
        Ok(QualifiedName { names: type_name.names, location: type_name.location })
    }

    /// What is dropped, and how many words say so.
    fn drop_object(&self) -> Option<(ObjectType, usize)> {
        let object = match self.keyword_at(1)? {
            Keyword::Table => ObjectType::Table,
            Keyword::Sequence => ObjectType::Sequence,
            Keyword::View => ObjectType::View,
            Keyword::Index => ObjectType::Index,
            Keyword::Collation => ObjectType::Collation,
            Keyword::Conversion => ObjectType::Conversion,
            Keyword::Statistics => ObjectType::StatisticExt,
            Keyword::Schema => ObjectType::Schema,
            Keyword::Type => ObjectType::Type,
            Keyword::Domain => ObjectType::Domain,
            Keyword::Materialized if self.is_keyword_at(2, Keyword::View) => {
                return Some((ObjectType::MatView, 2));
            }
            Keyword::Foreign if self.is_keyword_at(2, Keyword::Table) => {
                return Some((ObjectType::ForeignTable, 2));
            }
            _ => return None,
        };
        Some((object, 1))
    }
}
