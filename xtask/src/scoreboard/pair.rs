//! A session on PostgreSQL and one on Millpond, which run the statements of a file.
//!
//! A statement that is left out runs on PostgreSQL only. Afterwards Millpond gets the tables that
//! it has changed, or that it has changed in PostgreSQL and that Millpond refused to change. What
//! both run is never copied, so a wrong change shows in later answers. After each statement both
//! sessions are in a transaction, in a failed one, or in none.

use std::collections::{HashMap, HashSet};
use std::io;

use millpond_oracle::{Answer, Client, Statement, Transaction, words};

use super::exclusions::Exclusions;
use super::objects::Objects;
use super::relations::{Copier, Given, Snapshot, differing, snapshot};
use super::server::Server;
use crate::run::Failed;

/// What came of a statement.
pub enum Outcome {
    /// Only PostgreSQL has run it, for this reason.
    Excluded(String, Answer),
    /// Both have.
    Compared { expected: Answer, found: Answer },
    /// Millpond's server has ended.
    Gone,
}

/// The two sessions.
pub struct Pair<'a> {
    theirs: Client,
    ours: Server,
    exclusions: &'a Exclusions,
    objects: Objects,
    given: HashMap<String, Given>,
    /// The words of definitions that only PostgreSQL has run, names of relations among them.
    defined: HashSet<String>,
    begin: Option<Begin>,
    /// Relations that Millpond does not take, and why.
    pub not_given: Vec<String>,
}

/// What held before the transaction.
struct Begin {
    statement: String,
    snapshot: Snapshot,
    given: HashMap<String, Given>,
    /// Why a statement of the transaction was left out. Its end is, too: it may fail.
    excluded: Option<String>,
}

impl<'a> Pair<'a> {
    pub fn new(theirs: Client, ours: Server, exclusions: &'a Exclusions) -> Self {
        let (objects, given) = (Objects::default(), HashMap::new());
        let (defined, not_given) = (HashSet::new(), Vec::new());
        Pair { theirs, ours, exclusions, objects, given, defined, begin: None, not_given }
    }

    /// Begins with what Millpond has, and what it does not have.
    pub fn start_with(&mut self, objects: Objects, given: HashMap<String, Given>) {
        (self.objects, self.given) = (objects, given);
    }

    /// Millpond's server, and what it has.
    pub fn parts(self) -> (Server, Objects, HashMap<String, Given>) {
        (self.ours, self.objects, self.given)
    }

    /// Runs a statement of the set-up on PostgreSQL only.
    pub fn prepare(&mut self, statement: &Statement) -> io::Result<()> {
        let answer = self.theirs.run(&statement.text, &statement.data)?;
        if answer.refusal().is_none() {
            let words = words(&statement.text);
            let reason = self.exclusions.reason(&words).unwrap_or("of the set-up");
            self.objects.define(&words, reason);
        }
        Ok(())
    }

    /// Goes on with another session of PostgreSQL.
    pub fn replace_theirs(&mut self, theirs: Client) {
        self.theirs = theirs;
    }

    /// Gives Millpond all tables that PostgreSQL has.
    pub fn give_all(&mut self) -> io::Result<()> {
        let now = snapshot(&mut self.theirs)?;
        self.give(&now, now.keys().cloned().collect());
        Ok(())
    }

    /// Runs a statement on both sides, or on PostgreSQL's only.
    pub fn run(&mut self, statement: &Statement) -> io::Result<Outcome> {
        let words = words(&statement.text);
        let exclusion = self.exclusion(&words);
        let mut found = None;
        if exclusion.is_none() {
            self.refresh(&words)?;
            match self.ours.run(&statement.text, &statement.data) {
                Ok(answer) => found = Some(answer),
                Err(Failed(_)) => return Ok(Outcome::Gone),
            }
        }
        let alone = found.as_ref().is_none_or(|found| found.refusal().is_some());
        let before = self.before(&words, &statement.text, alone)?;
        let was = self.theirs.transaction();
        let expected = self.theirs.run(&statement.text, &statement.data)?;
        if alone && expected.refusal().is_none() {
            self.objects.drop_named(&words);
            if !is_query(&words) {
                self.defined.extend(words.iter().cloned());
            }
            self.objects.define(&words, exclusion.as_deref().unwrap_or("refused by Millpond"));
        }
        if let Some(begin) = self.begin.as_mut().filter(|_| !is_query(&words)) {
            begin.excluded = begin.excluded.take().or_else(|| exclusion.clone());
        }
        let restarted = self.align();
        self.catch_up(&words, before, restarted)?;
        if was != Transaction::None && self.theirs.transaction() == Transaction::None {
            let begin = self.begin.take();
            if let (Some(begin), Answer::Done(tag)) = (begin, &expected) {
                if tag == "ROLLBACK" {
                    self.given = begin.given;
                }
            }
        }
        Ok(match (exclusion, found) {
            (None, Some(found)) => Outcome::Compared { expected, found },
            (reason, _) => Outcome::Excluded(reason.unwrap_or_default(), expected),
        })
    }

    /// Why a statement is left out.
    fn exclusion(&self, words: &[String]) -> Option<String> {
        if let Some(reason) = self.exclusions.reason(words) {
            return Some(reason.to_owned());
        }
        if let Some((reason, _)) = self.objects.named(words) {
            return Some(reason.to_owned());
        }
        if let Some(reason) = self.catalog_reason(words) {
            return Some(reason);
        }
        let is_commit = matches!(words.first().map(String::as_str), Some("commit" | "end"));
        if let Some(begin) = self.begin.as_ref().filter(|_| is_commit) {
            return begin.excluded.clone();
        }
        let named = words.iter().filter_map(|word| self.given.get(word.trim_matches('\'')));
        let mut limits = named.filter_map(|given| given.limit.as_ref());
        let only_reads = is_query(words) && !words.iter().any(|word| word == "only");
        if only_reads { None } else { limits.next().cloned() }
    }

    /// Why a query of the system catalogs is left out: it is about a relation whose definition
    /// only PostgreSQL has. The literal may be a pattern that the name matches.
    fn catalog_reason(&self, words: &[String]) -> Option<String> {
        let is_catalog = |word: &String| word.starts_with("pg_") || word == "information_schema";
        if !words.iter().any(is_catalog) {
            return None;
        }
        words.iter().filter(|word| word.starts_with('\'')).find_map(|literal| {
            let literal = literal.trim_matches(|c: char| !c.is_alphanumeric());
            let end = literal.find(|c: char| !c.is_alphanumeric() && c != '_');
            let start = &literal[..end.unwrap_or(literal.len())];
            let is_prefix = start.len() >= 3 && start.len() < literal.len();
            let names = |name: &str| name == start || is_prefix && name.starts_with(start);
            let defined = self.defined.iter().find(|name| names(name));
            defined.map(|_| "system catalogs, of relations that only PostgreSQL defines".to_owned())
        })
    }

    /// The relations before a statement that PostgreSQL may run alone. A transaction's beginning
    /// is noted, too.
    fn before(
        &mut self,
        words: &[String],
        text: &str,
        alone: bool,
    ) -> io::Result<Option<Snapshot>> {
        let first = words.first().map_or("", String::as_str);
        let transaction = self.theirs.transaction();
        if transaction == Transaction::None && matches!(first, "begin" | "start") {
            let snapshot = snapshot(&mut self.theirs)?;
            let (statement, given) = (text.to_owned(), self.given.clone());
            self.begin = Some(Begin { statement, snapshot, given, excluded: None });
            return Ok(None);
        }
        // What sets a transaction's properties must come before any query.
        if transaction == Transaction::Failed || matches!(first, "set" | "show") {
            return Ok(None);
        }
        if matches!(first, "commit" | "end") {
            // It may empty or drop temporary tables. If Millpond refuses it, its changes are gone.
            return match &self.begin {
                Some(begin) if alone => Ok(Some(begin.snapshot.clone())),
                Some(_) => snapshot(&mut self.theirs).map(Some),
                None => Ok(None),
            };
        }
        // What DROP takes away may have hidden a relation of the same name.
        if !alone && first != "drop" {
            return Ok(None);
        }
        snapshot(&mut self.theirs).map(Some)
    }

    /// Copies the rows of views that a statement names.
    fn refresh(&mut self, words: &[String]) -> io::Result<()> {
        let is_derived = |word: &&String| self.given.get(*word).is_some_and(|given| given.derived);
        let named: Vec<String> = words.iter().filter(is_derived).cloned().collect();
        if !named.is_empty() && self.theirs.transaction() != Transaction::Failed {
            let now = snapshot(&mut self.theirs)?;
            self.give(&now, named);
        }
        Ok(())
    }

    /// Brings Millpond's session to the same state of its transaction. True: it is a new
    /// transaction, without the changes of the one before.
    fn align(&mut self) -> bool {
        match (self.theirs.transaction(), self.ours.transaction()) {
            (Transaction::None, Transaction::Open | Transaction::Failed) => {
                self.ours_runs("rollback")
            }
            (Transaction::Open, Transaction::None | Transaction::Failed) => {
                self.begin_again();
                return true;
            }
            (Transaction::Failed, Transaction::None | Transaction::Open) => {
                self.ours_runs("begin");
                self.ours_runs("select 1 / 0");
            }
            _ => {}
        }
        false
    }

    /// Begins Millpond's transaction as PostgreSQL's began, if it can.
    fn begin_again(&mut self) {
        self.ours_runs("rollback");
        if let Some(begin) = &self.begin {
            let _ = self.ours.run(&begin.statement, "");
        }
        if self.ours.transaction() != Transaction::Open {
            self.ours_runs("begin");
        }
    }

    /// Whether Millpond takes the statement shows in the state of its transaction.
    fn ours_runs(&mut self, statement: &str) {
        let _ = self.ours.run(statement, "");
    }

    /// Gives Millpond what PostgreSQL has changed alone.
    fn catch_up(
        &mut self,
        words: &[String],
        before: Option<Snapshot>,
        mut restarted: bool,
    ) -> io::Result<()> {
        let back = words.first().is_some_and(|word| word == "rollback");
        match self.theirs.transaction() {
            Transaction::Failed => return Ok(()),
            Transaction::None if back => return Ok(()),
            // After ROLLBACK TO, a table may have any of its former states.
            Transaction::Open if back => {
                self.begin_again();
                restarted = true;
            }
            _ => {}
        }
        let before = match &self.begin {
            Some(begin) if restarted => Some(begin.snapshot.clone()),
            _ => before,
        };
        let Some(before) = before else { return Ok(()) };
        let now = snapshot(&mut self.theirs)?;
        self.give(&now, differing(&before, &now));
        Ok(())
    }

    /// Gives Millpond these relations, or takes away what PostgreSQL no longer has.
    fn give(&mut self, now: &Snapshot, names: Vec<String>) {
        let mut left = names;
        while let Some(name) = left.pop() {
            if self.give_one(&name, now) || !self.align() {
                continue;
            }
            // A failure has ended Millpond's transaction, and a new one has none of the changes.
            if let Some(begin) = &self.begin {
                left.extend(differing(&begin.snapshot, now));
            }
            left.retain(|name| !self.objects.is_lost(name));
        }
    }

    /// False: Millpond doesn't take the relation.
    fn give_one(&mut self, name: &str, now: &Snapshot) -> bool {
        let mut copier = Copier { theirs: &mut self.theirs, ours: &mut self.ours };
        let given = match now.get(name) {
            Some(state) => copier.give(name, state, self.given.get(name)).map(Some),
            None => copier.take(name).map(|()| None),
        };
        self.given.remove(name);
        match given {
            Ok(given) => {
                self.objects.find(name);
                self.given.extend(given.map(|given| (name.to_owned(), given)));
                true
            }
            Err(message) => {
                let is_size =
                    message.contains("row can hold") || message.contains("row is too big");
                let reason = if is_size { "values beyond a page" } else { "types of columns" };
                self.not_given.push(format!("{name}: {message}"));
                self.objects.lose(name, reason);
                let _ = Copier { theirs: &mut self.theirs, ours: &mut self.ours }.take(name);
                false
            }
        }
    }
}

/// Whether a statement only reads.
fn is_query(words: &[String]) -> bool {
    let has = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
    let reads = !has(&["insert", "update", "delete"]);
    match words.first().map_or("", String::as_str) {
        "select" | "values" | "table" | "(" => !has(&["update", "share"]),
        "with" => reads,
        "copy" => reads && has(&["to"]) && words.get(1).is_some_and(|word| word == "("),
        "analyze" | "vacuum" | "prepare" | "execute" => true,
        _ => false,
    }
}
