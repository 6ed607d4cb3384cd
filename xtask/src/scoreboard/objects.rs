//! The objects that only PostgreSQL has, because their definitions are left out or were refused.

use std::collections::HashMap;

/// How a statement names an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `name(`
    Function,
    /// `name.`
    Schema,
    /// `execute name`
    Prepared,
    /// By its symbol.
    Operator,
    /// Any word, or a literal of the name.
    Other,
}

/// The objects, by kind and name, with the reason why Millpond does not have them.
#[derive(Default, Clone)]
pub struct Objects(HashMap<String, (Kind, String)>);

/// What stands between CREATE and the kind of the object.
const MODIFIERS: [&str; 14] = [
    "or",
    "replace",
    "temp",
    "temporary",
    "local",
    "global",
    "unlogged",
    "recursive",
    "default",
    "trusted",
    "procedural",
    "unique",
    "constraint",
    "foreign",
];

impl Objects {
    /// Notes what a statement that only PostgreSQL has run defines.
    pub fn define(&mut self, words: &[String], reason: &str) {
        if let Some((kind, name)) = defined(words) {
            self.0.insert(name, (kind, reason.to_owned()));
        }
    }

    /// Notes a relation that can't be given to Millpond.
    pub fn lose(&mut self, relation: &str, reason: &str) {
        self.0.insert(relation.to_owned(), (Kind::Other, reason.to_owned()));
    }

    /// Whether there is an object of this name that only PostgreSQL has.
    pub fn is_lost(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Forgets an object of this name.
    pub fn find(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Forgets what a statement has dropped.
    pub fn drop_named(&mut self, words: &[String]) {
        if matches!(words.first().map(String::as_str), Some("drop" | "deallocate")) {
            for word in words {
                self.0.remove(word);
            }
        }
    }

    /// The reason why Millpond doesn't have an object that the statement names, and its name.
    pub fn named<'a>(&'a self, words: &'a [String]) -> Option<(&'a str, &'a str)> {
        (0..words.len()).find_map(|at| {
            let name = words[at].trim_matches('\'');
            let (kind, reason) = self.0.get(name).or_else(|| self.operator(&words[at..]))?;
            is_named(*kind, words, at).then_some((reason.as_str(), name))
        })
    }

    /// The operator whose symbol begins here.
    fn operator(&self, words: &[String]) -> Option<&(Kind, String)> {
        let symbol = symbol(words);
        (!symbol.is_empty()).then(|| self.0.get(&symbol)).flatten()
    }
}

fn is_named(kind: Kind, words: &[String], at: usize) -> bool {
    let next = words.get(at + 1).map(String::as_str);
    let last = at.checked_sub(1).map(|at| words[at].as_str());
    match kind {
        Kind::Function => next == Some("(") || words[at].starts_with('\''),
        Kind::Schema => next == Some(".") || words[0] == "set" || words[at].starts_with('\''),
        Kind::Prepared => matches!(last, Some("execute" | "deallocate")),
        Kind::Operator => last.is_none_or(|last| symbol(&[last.to_owned()]).is_empty()),
        Kind::Other => last != Some("."),
    }
}

/// The operator's symbol that the words begin with.
fn symbol(words: &[String]) -> String {
    let is_symbol = |word: &&String| word.len() == 1 && "+-*/<>=~!@#%^&|`?".contains(word.as_str());
    words.iter().take_while(is_symbol).map(String::as_str).collect()
}

/// The kind and name of what a statement defines.
fn defined(words: &[String]) -> Option<(Kind, String)> {
    let mut words = words.iter().map(String::as_str).peekable();
    match words.next()? {
        "prepare" => return Some((Kind::Prepared, words.next()?.to_owned())),
        "create" => {}
        _ => return None,
    }
    while words.next_if(|word| MODIFIERS.contains(word)).is_some() {}
    let kind = match words.next()? {
        "function" | "procedure" | "aggregate" => Kind::Function,
        "schema" => Kind::Schema,
        "operator" => {
            if words.next_if(|word| matches!(*word, "class" | "family")).is_some() {
                return Some((Kind::Other, words.next()?.to_owned()));
            }
            let all: Vec<String> = words.map(str::to_owned).collect();
            return Some((Kind::Operator, symbol(&all)));
        }
        "index" | "type" | "domain" | "sequence" | "role" | "user" | "group" | "collation"
        | "language" | "conversion" | "server" | "statistics" => Kind::Other,
        _ => return None,
    };
    let before_name = ["if", "not", "exists", "concurrently"];
    while words.next_if(|word| before_name.contains(word)).is_some() {}
    // An index may have no name.
    let mut name = words.next().filter(|name| *name != "on")?;
    // Of a name with a schema, what is behind the schema.
    while words.next_if_eq(&".").is_some() {
        name = words.next()?;
    }
    Some((kind, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::Objects;
    use millpond_oracle::words;

    #[test]
    fn statements_that_name_an_object() {
        let mut objects = Objects::default();
        for definition in [
            "create or replace function f(int) returns int as 'x'",
            "create domain d as int",
            "create schema s",
            "prepare p as select 1",
            "create operator !== (leftarg = int)",
            "create type s.y as (a int)",
        ] {
            objects.define(&words(definition), definition);
        }
        for (statement, named) in [
            ("select f(1)", true),
            ("select f from t", false),
            ("select 1::d", true),
            ("select t.d from t", false),
            ("select * from s.t", true),
            ("select s from t", false),
            ("execute p", true),
            ("select p", false),
            ("select 1 !== 2", true),
            ("select 1 !=- 2", false),
            ("select null::y", true),
        ] {
            assert_eq!(objects.named(&words(statement)).is_some(), named, "{statement}");
        }
        objects.drop_named(&words("drop domain d"));
        assert_eq!(objects.named(&words("select 1::d")), None);
    }
}
