//! What a text is compiled to when the lexer has scanned it: a plan, or the parse of a statement
//! that has none.

use std::sync::Arc;

use super::Connection;
use super::shared::{Compiled, Text};
use crate::Wait;
use crate::error::Result;
use crate::expr::bind::ParamTypes;
use crate::memory::ValueRoom;
use crate::parse::{self, Source, Statement};
use crate::plan::{Plan, Planner, UsableIndexes};

/// What is known of a text that the lexer has scanned.
pub(super) enum Known {
    /// It holds as long as no definition changes.
    Lasting(Arc<Text>),
    /// It holds for as long as an index is too new for the transaction's snapshot.
    Passing(Compiled),
}

impl Connection {
    /// What is known of the text that the lexer has just scanned: from the database's shared plans
    /// if another connection has compiled it, else compiled now.
    pub(super) fn known_or_compiled(&self, sql: &str, generation: u64) -> Known {
        let shared = self.session.sees_the_latest_catalog().then(|| self.database.plans());
        if let Some(text) = shared.and_then(|plans| plans.get(&self.key, generation)) {
            return Known::Lasting(text);
        }
        let indexes = UsableIndexes::new(&self.session);
        let compiled = self.compile(sql, &indexes);
        if indexes.passed_over() {
            return Known::Passing(compiled);
        }
        let text = Text::new(&self.key, compiled, generation);
        if let Some(plans) = shared {
            plans.put(&text);
        }
        Known::Lasting(text)
    }

    /// Bounds what this thread makes for the connection, until it is dropped.
    fn value_room(&self) -> ValueRoom {
        ValueRoom::enter(self.resources.memory.share())
    }

    /// The statements of a text.
    pub(super) fn parse(&self, sql: &str) -> Result<Vec<Statement>> {
        let _room = self.value_room();
        parse::parse(sql)
    }

    /// Compiles the text that the lexer has just scanned.
    fn compile(&self, sql: &str, indexes: &UsableIndexes<'_>) -> Compiled {
        let _room = self.value_room();
        let Some(statement) = parse::parse_lifted(sql, &self.literals) else {
            return Compiled::Nothing;
        };
        if statement.is_control() {
            // With literals, the key is also that of other texts.
            return match self.literals.is_empty() {
                true => Compiled::Statement(statement),
                false => Compiled::Nothing,
            };
        }
        let catalog = self.catalog();
        let planner = Planner {
            catalog: &catalog,
            source: Source::new(sql),
            external: self.database.query_engine(),
            zone: self.settings.format_options().zone,
            // The query engine's plans would not know the literals.
            wait: Wait::Never,
            indexes,
        };
        match planner.plan(&statement, ParamTypes::Lifted(&self.literals)) {
            // A query engine's plan would not know the literals.
            Ok(planned) if !matches!(planned.plan, Plan::External(_)) => {
                Compiled::Plan(Arc::new(planned))
            }
            _ => Compiled::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::conn::shared::Compiled;
    use crate::{Database, Settings};

    #[test]
    fn parse_of_transaction_control_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings::default().with("shared_buffers", "4MB").unwrap();
        let mut connection = Database::open(dir.path(), settings).unwrap().connect().unwrap();
        for text in ["begin;", "set work_mem to default", "commit", "BEGIN READ ONLY", "rollback"] {
            connection.batch(text).unwrap();
            let (at, found) = connection.cache.take(&connection.key).expect(text);
            assert!(matches!(found.compiled, Compiled::Statement(_)), "{text}: {found:?}");
            connection.cache.put_back(at, found);
            connection.batch(text).unwrap();
        }
        // What the literal was is not in the key.
        connection.batch("set work_mem to 1024").unwrap();
        let (_, found) = connection.cache.take(&connection.key).expect("known");
        assert!(matches!(found.compiled, Compiled::Nothing));
    }

    #[test]
    fn kept_statements_behave_as_parsed_ones() {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings::default().with("shared_buffers", "4MB").unwrap();
        let mut connection = Database::open(dir.path(), settings).unwrap().connect().unwrap();
        connection.batch("create table t (a int)").unwrap();
        for _ in 0..3 {
            connection.batch("begin").unwrap();
            connection.batch("insert into t values (1)").unwrap();
            connection.batch("rollback").unwrap();
            connection.batch("begin read only").unwrap();
            connection.batch("insert into t values (1)").unwrap_err();
            // It rolls back, and says so.
            connection.batch("commit").unwrap_err();
            connection.batch("rollback and chain").unwrap_err();
            connection.batch("show no_such_setting").unwrap_err();
        }
        let rows = connection.query("select count(*) from t", &[]).unwrap();
        assert_eq!(rows.rows, [[crate::Value::Int8(0)]]);
    }

    #[cfg(feature = "datafusion")]
    #[test]
    fn what_lacks_an_index_for_a_while_is_not_taken_for_lasting() {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings::default().with("shared_buffers", "4MB").unwrap();
        let database = Database::open(dir.path(), settings).unwrap();
        let (mut old, mut new) = (database.connect().unwrap(), database.connect().unwrap());
        new.batch(
            "create table t (k int, v int); insert into t select i, 0 from generate_series(1, 3000) g(i)",
        )
        .unwrap();
        new.batch("analyze t").unwrap();
        old.batch("begin isolation level repeatable read; select v from t limit 1").unwrap();
        // The old snapshot sees a version for which the index has no entry.
        new.batch("update t set v = 1 where k = 1").unwrap();
        new.batch("create index on t (k)").unwrap();
        let text = "select v from t order by k limit 1";
        old.batch(text).unwrap();
        assert!(old.cache.take(&old.key).is_none(), "known to have no plan");
        old.batch("commit").unwrap();
        old.batch(text).unwrap();
        let (_, found) = old.cache.take(&old.key).expect("known");
        assert!(found.compiled.plan().is_some(), "and to have a plan");
    }
}
