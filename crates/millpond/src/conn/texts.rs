//! What a connection knows of texts that its lexer has scanned: for each a plan, or the parse of a
//! statement that has none.

use std::sync::Arc;

use millpond_sync::prefetch::prefetch;

use super::session::SqlSession;
use super::types::Params;
use crate::shared_plans::{Compiled, Text};
use crate::{DataType, Value};
use millpond_query::error::Result;
use millpond_query::expr::bind::ParamTypes;
use millpond_query::expr::types::NUMERIC;
use millpond_query::lex::cache::Cache;
use millpond_query::lex::{self, LiteralKind, Literals};
use millpond_query::parse::{self, Source};
use millpond_query::plan::{Planned, RangeEstimates, UsableIndexes};
use millpond_types::format::{FormatOptions, text};

/// Plans kept behind the lexer, for one connection.
const CACHED_PLANS: usize = 256;
/// The most that their texts take, in bytes.
const CACHED_TEXT_BYTES: usize = 256 << 10;

/// The texts of one connection, and what the lexer has made of the last one.
#[derive(Debug)]
pub(super) struct Texts {
    cache: Cache<Text>,
    key: Vec<u8>,
    literals: Literals,
    /// A plan that takes the place of the text's, when the text is put back.
    renewed: Option<Arc<Planned>>,
}

/// What is known of a text that the lexer has scanned.
pub(super) enum Known {
    /// It holds as long as no definition changes. It was taken from its place in the cache, where
    /// [`Texts::put_back`] puts it again.
    Lasting(usize, Arc<Text>),
    /// It holds for as long as an index is too new for the transaction's snapshot.
    Passing(Compiled),
    /// Nothing.
    Nothing,
}

impl Texts {
    pub(super) fn new() -> Self {
        let (cache, key) = (Cache::new(CACHED_PLANS, CACHED_TEXT_BYTES), Vec::new());
        Self { cache, key, literals: Literals::new(), renewed: None }
    }

    /// See [`Connection::prefetch`](super::Connection::prefetch).
    pub(super) fn prefetch(&self) {
        prefetch(&self.key[..]);
    }

    /// Scans a text, unless it is not one for the lexer.
    pub(super) fn scan(&mut self, sql: &str) -> bool {
        lex::scan(sql, &mut self.key, &mut self.literals).is_some()
    }

    /// What is known of the text that was scanned last. It is compiled if nothing is.
    #[inline]
    pub(super) fn known(&mut self, session: &SqlSession, sql: &str) -> Known {
        let generation = session.engine.catalog_generation();
        self.renewed = None;
        match self.cache.take(&self.key) {
            Some((at, text)) if text.generation == generation => Known::Lasting(at, text),
            older => {
                if let Some((at, _)) = older {
                    self.cache.forget(at);
                }
                self.find_out(session, sql, generation)
            }
        }
    }

    /// Puts back what `known` has taken, with a plan that `renew` has made since.
    #[inline]
    pub(super) fn put_back(&mut self, at: usize, text: Arc<Text>, session: &SqlSession) {
        let text = match self.renewed.take() {
            None => text,
            Some(planned) => self.renewed_text(&text, planned, session),
        };
        self.cache.put_back(at, text);
    }

    /// Other connections get it, too, if what they have was a guess.
    fn renewed_text(&self, old: &Text, planned: Arc<Planned>, session: &SqlSession) -> Arc<Text> {
        let was_guessed = old.compiled.plan().is_some_and(|planned| planned.is_guessed());
        let text = Text::new(&self.key, Compiled::Plan(planned), old.generation);
        if was_guessed && session.engine.sees_the_latest_catalog() {
            session.database.plans().put(&text);
        }
        text
    }

    /// Plans the text that was scanned last for the values of its literals. `None` if that fails.
    pub(super) fn renew(
        &mut self,
        session: &SqlSession,
        sql: &str,
        values: &[Value],
    ) -> Option<Arc<Planned>> {
        let indexes = UsableIndexes::new(&session.engine);
        let compiled = self.compile(session, sql, &indexes, Some(values));
        self.renewed = compiled.plan().filter(|planned| !planned.passing).cloned();
        compiled.plan().cloned()
    }

    /// From the database's shared plans if another connection has compiled it, else compiled now.
    fn find_out(&mut self, session: &SqlSession, sql: &str, generation: u64) -> Known {
        let shared = session.engine.sees_the_latest_catalog().then(|| session.database.plans());
        let text = match shared.and_then(|plans| plans.get(&self.key, generation)) {
            Some(text) => text,
            None => {
                let indexes = UsableIndexes::new(&session.engine);
                let compiled = self.compile(session, sql, &indexes, None);
                if indexes.passed_over() {
                    return Known::Passing(compiled);
                }
                if compiled.plan().is_some_and(|planned| planned.passing) {
                    // The statement is planned again where the session may wait for the page.
                    return Known::Passing(Compiled::Nothing);
                }
                let text = Text::new(&self.key, compiled, generation);
                if let Some(plans) = shared {
                    plans.put(&text);
                }
                text
            }
        };
        self.cache.put(text);
        match self.cache.take(&self.key) {
            Some((at, text)) => Known::Lasting(at, text),
            None => Known::Nothing,
        }
    }

    /// Compiles the text, for values of its literals if they are there.
    fn compile(
        &self,
        session: &SqlSession,
        sql: &str,
        indexes: &UsableIndexes<'_>,
        values: Option<&[Value]>,
    ) -> Compiled {
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
        let params = ParamTypes::lifted(&self.literals);
        let facts = session.facts();
        let ranges = RangeEstimates::new(&session.engine, &facts, values);
        match session.plan_with(indexes, &ranges, (&statement, sql), params) {
            Ok(planned) => Compiled::Plan(Arc::new(planned)),
            Err(_) => Compiled::Nothing,
        }
    }

    /// The literals that were lifted out of the text, as values of the types that they have in the
    /// text's plan.
    pub(super) fn literal_values(
        &self,
        sql: &str,
        types: &[DataType],
        options: impl Fn() -> FormatOptions,
    ) -> Result<Params> {
        let parsed = |ty, string: &str, options: &FormatOptions, at| {
            text::parse(ty, string, options)
                .map_err(|error| Source::new(sql).place(error.into(), at))
        };
        let mut values = Params::with_capacity(self.literals.len());
        for (literal, ty) in self.literals.iter().zip(types) {
            let own = literal.text(sql);
            values.push(match literal.kind {
                LiteralKind::Int4(int) => Value::Int4(int),
                LiteralKind::Int8(int) => Value::Int8(int),
                LiteralKind::Numeric => {
                    parsed(NUMERIC, own, &FormatOptions::default(), literal.start)?
                }
                LiteralKind::String(has_quotes) => {
                    let string = if has_quotes { own.replace("''", "'") } else { own.to_owned() };
                    match ty {
                        DataType::Text | DataType::Varchar(None) => Value::Text(string),
                        ty => parsed(*ty, &string, &options(), literal.start - 1)?,
                    }
                }
            });
        }
        Ok(values)
    }

    /// Forgets all texts.
    pub(super) fn clear(&mut self) {
        self.cache.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Database, Settings};

    impl Texts {
        /// What is kept of the text that was scanned last.
        fn take(&mut self) -> Option<(usize, Arc<Text>)> {
            self.cache.take(&self.key)
        }
    }

    #[test]
    fn parse_of_transaction_control_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings::default().with("shared_buffers", "4MB").unwrap();
        let mut connection = Database::open(dir.path(), settings).unwrap().connect().unwrap();
        for text in ["begin;", "set work_mem to default", "commit", "BEGIN READ ONLY", "rollback"] {
            connection.batch(text).unwrap();
            let (at, found) = connection.texts.take().expect(text);
            assert!(matches!(found.compiled, Compiled::Statement(_)), "{text}: {found:?}");
            connection.texts.put_back(at, found, &connection.session);
            connection.batch(text).unwrap();
        }
        // What the literal was is not in the key.
        connection.batch("set work_mem to 1024").unwrap();
        let (_, found) = connection.texts.take().expect("known");
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

    #[test]
    fn a_text_that_has_no_lasting_plan_any_more_takes_no_room() {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings::default().with("shared_buffers", "4MB").unwrap();
        let database = Database::open(dir.path(), settings).unwrap();
        let (mut old, mut new) = (database.connect().unwrap(), database.connect().unwrap());
        new.batch("create table t (k int, v int); insert into t values (1, 0), (2, 0)").unwrap();
        let text = "select v from t where k = 1";
        old.batch("begin isolation level repeatable read").unwrap();
        let before = old.texts.cache.bytes();
        old.batch(text).unwrap();
        assert!(old.texts.cache.bytes() > before);
        // The snapshot sees a version for which the index has no entry, so the plan lasts no longer
        // than the transaction.
        new.batch("update t set v = 1 where k = 1").unwrap();
        new.batch("create index on t (k)").unwrap();
        old.batch(text).unwrap();
        assert_eq!(old.texts.cache.bytes(), before);
        old.batch("commit").unwrap();
        let before = old.texts.cache.bytes();
        old.batch(text).unwrap();
        assert!(old.texts.cache.bytes() > before);
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
        assert!(old.texts.take().is_none(), "known to have no plan");
        old.batch("commit").unwrap();
        old.batch(text).unwrap();
        let (_, found) = old.texts.take().expect("known");
        assert!(found.compiled.plan().is_some(), "and to have a plan");
    }
}
