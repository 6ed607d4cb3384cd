//! Relations of PostgreSQL: what changes them, and how Millpond gets a table like them.

use std::collections::BTreeMap;
use std::io;

use millpond_oracle::{Answer, Client};

use super::server::Server;

/// A relation, as far as one can tell whether a statement has changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Its columns, constraints, unique indexes, triggers and rules, and its file.
    pub shape: String,
    /// How many rows were inserted, updated and deleted.
    changes: String,
    /// A view, or a table with children: others change its rows.
    pub derived: bool,
}

/// The relations that a session sees, by name.
pub type Snapshot = BTreeMap<String, State>;

/// The counters of rows are those of the session and those that it has reported.
const SNAPSHOT: &str = "
select c.relname,
    concat_ws(' ', c.oid, c.relkind, exists (select from pg_inherits where inhparent = c.oid), c.relfilenode, c.relhastriggers, c.relhasrules,
        c.relrowsecurity,
        (select string_agg(concat_ws(' ', attname, xmin, atttypid), ',' order by attnum)
            from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped),
        (select string_agg(concat_ws(' ', xmin, oid), ',' order by oid)
            from pg_attrdef where adrelid = c.oid),
        (select string_agg(concat_ws(' ', xmin, oid), ',' order by oid)
            from pg_constraint where conrelid = c.oid or confrelid = c.oid),
        (select string_agg(indexrelid::text, ',' order by indexrelid)
            from pg_index where indrelid = c.oid and indisunique)),
    pg_stat_get_tuples_inserted(c.oid) + pg_stat_get_tuples_updated(c.oid)
        + pg_stat_get_tuples_deleted(c.oid) + pg_stat_get_xact_tuples_inserted(c.oid)
        + pg_stat_get_xact_tuples_updated(c.oid) + pg_stat_get_xact_tuples_deleted(c.oid),
    c.relkind in ('v', 'm', 'p') or exists (select from pg_inherits where inhparent = c.oid)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm') and pg_table_is_visible(c.oid)
    and n.nspname <> 'pg_catalog'";

/// The relations that PostgreSQL's session sees.
pub fn snapshot(theirs: &mut Client) -> io::Result<Snapshot> {
    let rows = rows(theirs.run(SNAPSHOT, "")?).map_err(io::Error::other)?;
    let relations = rows.into_iter().filter_map(|row| {
        let [name, shape, changes, derived] = row.try_into().ok()?;
        let derived = derived.as_deref() == Some("t");
        Some((name?, State { shape: shape?, changes: changes?, derived }))
    });
    Ok(relations.collect())
}

/// The relations whose states differ.
pub fn differing(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    names.filter(|name| before.get(*name) != after.get(*name)).cloned().collect()
}

/// A relation that Millpond has as a table.
#[derive(Debug, Clone)]
pub struct Given {
    /// That of the relation.
    pub shape: String,
    /// Why only PostgreSQL changes its rows: what Millpond's table lacks.
    pub limit: Option<String>,
    /// Its rows are copied before each statement that names it.
    pub derived: bool,
}

/// What Millpond's table lacks, as a reason of `exclusions.txt`.
const LIMIT: &str = "
select case
    when c.relkind in ('v', 'm') then 'views'
    when c.relkind = 'p' or c.relispartition then 'partitions'
    when exists (select from pg_inherits where c.oid in (inhrelid, inhparent))
        then 'INHERITS, LIKE and OF'
    when exists (select from pg_constraint where c.oid in (conrelid, confrelid)
        and contype in ('c', 'f')) then 'CHECK and FOREIGN KEY'
    when c.relhasrules or exists (select from pg_trigger where tgrelid = c.oid
        and not tgisinternal) then 'triggers and rules'
    when c.relrowsecurity then 'roles, GRANT and row-level security'
    when exists (select from pg_attribute where attrelid = c.oid and attnum > 0
        and (attidentity <> '' or attgenerated <> '')) or exists (select from pg_attrdef
        where adrelid = c.oid and pg_get_expr(adbin, adrelid) like '%nextval(%')
        then 'generated columns, identity and serial'
    when exists (select from pg_attribute a join pg_type t on t.oid = atttypid
        where attrelid = c.oid and typtype = 'd') then 'types and domains'
    when exists (select from pg_index where indrelid = c.oid and indisunique
        and (indexprs is not null or indpred is not null or indnkeyatts < indnatts))
        or exists (select from pg_constraint where conrelid = c.oid and contype = 'x')
        then 'partial, covering and expression indexes, CONCURRENTLY'
    end
from pg_class c where c.oid = '$'::regclass";

/// The columns as CREATE TABLE has them. Of domains their base types: a result has these, too.
const COLUMNS: &str = "
select string_agg(concat_ws(' ', quote_ident(attname),
    case when t.typtype = 'd' then format_type(t.typbasetype, t.typtypmod)
        else format_type(atttypid, atttypmod) end,
    case when attnotnull then 'not null' end,
    (select 'default ' || pg_get_expr(adbin, adrelid) from pg_attrdef
        where adrelid = attrelid and adnum = attnum and attgenerated = ''
        and pg_get_expr(adbin, adrelid) not like '%nextval(%')), ', ' order by attnum)
from pg_attribute join pg_type t on t.oid = atttypid
where attrelid = '$'::regclass and attnum > 0 and not attisdropped";

/// Keys, and plain indexes beside them.
const KEYS: &str = "
select format('alter table %s add constraint %I %s', '$', conname, pg_get_constraintdef(oid))
from pg_constraint where conrelid = '$'::regclass and contype in ('p', 'u')
union all
select regexp_replace(pg_get_indexdef(i.indexrelid), ' ON (ONLY )?\\S+ USING', ' ON $ USING')
from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am m on m.oid = c.relam
where i.indrelid = '$'::regclass and m.amname = 'btree' and i.indexprs is null
    and i.indpred is null and i.indnkeyatts = i.indnatts
    and not exists (select from pg_constraint where conindid = i.indexrelid and contype <> 'f')";

/// The connections on which relations are copied.
pub struct Copier<'a> {
    pub theirs: &'a mut Client,
    pub ours: &'a mut Server,
}

impl Copier<'_> {
    /// Gives Millpond a table with the columns, keys and rows of a relation. If it has one of this
    /// shape, only the rows. The error says what Millpond doesn't take.
    pub fn give(
        &mut self,
        name: &str,
        state: &State,
        old: Option<&Given>,
    ) -> Result<Given, String> {
        let quoted = format!("\"{name}\"");
        let of = |query: &str| query.replace('$', &quoted);
        if let Some(old) = old.filter(|old| old.shape == state.shape) {
            if self.ours(&format!("truncate {quoted}"), "").is_ok() {
                self.rows(&quoted)?;
                return Ok(old.clone());
            }
        }
        self.take(name)?;
        let columns = self.theirs(&of(COLUMNS))?.concat();
        self.ours(&format!("create table {quoted} ({columns})"), "")?;
        self.rows(&quoted)?;
        for key in self.theirs(&of(KEYS))? {
            self.ours(&key, "")?;
        }
        let limit = self.theirs(&of(LIMIT))?.pop();
        Ok(Given { shape: state.shape.clone(), limit, derived: state.derived })
    }

    /// Takes a table away.
    pub fn take(&mut self, name: &str) -> Result<(), String> {
        self.ours(&format!("drop table if exists \"{name}\""), "")
    }

    /// Copies the rows into an empty table.
    fn rows(&mut self, quoted: &str) -> Result<(), String> {
        let rows = self.theirs(&format!("copy (select * from {quoted}) to stdout"))?.concat();
        self.ours(&format!("copy {quoted} from stdin"), &rows)
    }

    /// The values of the first column, without NULL.
    fn theirs(&mut self, query: &str) -> Result<Vec<String>, String> {
        let answer = self.theirs.run(query, "").map_err(|error| error.to_string())?;
        Ok(rows(answer)?.into_iter().filter_map(|row| row.into_iter().next()?).collect())
    }

    fn ours(&mut self, statement: &str, data: &str) -> Result<(), String> {
        let answer = self.ours.run(statement, data).map_err(|error| error.0)?;
        answer.refusal().map_or(Ok(()), |refusal| Err(refusal.message.clone()))
    }
}

/// The rows of an answer, or the message of an error.
fn rows(answer: Answer) -> Result<Vec<Vec<Option<String>>>, String> {
    match answer {
        Answer::Rows { rows, .. } => Ok(rows),
        Answer::Done(_) => Ok(Vec::new()),
        Answer::Refused(refusal) => Err(refusal.message),
    }
}
