//! The functions, operators and casts of `pg_proc`, `pg_operator` and `pg_cast`, as random calls.
//!
//! Functions that return sets and volatile ones are left out. So are those whose result depends on
//! the server, the session or the day (`is_left_out`). A few differ with a reason (`DIFFERENT`).

use millpond_oracle::Answer;

use crate::answers::Answers;
use crate::tables::Type;
use crate::values::Kind;

/// A function, an operator or a cast with the kinds of its arguments and of its result.
#[derive(Debug)]
pub struct Routine {
    form: Form,
    pub args: Vec<Param>,
    pub result: Param,
}

#[derive(Debug)]
enum Form {
    Function(String),
    Operator(String),
    Cast,
}

/// The kind of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param {
    Is(Kind),
    /// Any kind at all.
    Any,
    /// The kind that the call has chosen for its polymorphic parameters, and arrays of it.
    Element,
    Array,
    /// None or more values of that kind, or of any kind.
    Rest(Kind),
    RestAny,
}

/// All routines whose types have values here.
#[derive(Debug, Default)]
pub struct Catalog(Vec<Routine>);

impl Catalog {
    /// What the database has. The order is that of the names, so that a seed repeats its queries.
    pub fn load(answers: &mut Answers) -> Self {
        let mut all = Vec::new();
        let functions = "select proname, array_to_string(proargtypes, ' '), prorettype, provariadic, provolatile \
             from pg_proc where prokind = 'f' and not proretset and provolatile <> 'v' \
             order by 1, 2, 3";
        for row in rows(answers, functions) {
            let [name, args, result, rest, volatile] = &row[..] else { continue };
            all.extend(function(name, args, result, rest, volatile == "s"));
        }
        let operators = "select oprname, oprleft, oprright, oprresult from pg_operator \
             order by 1, 2, 3";
        for row in rows(answers, operators) {
            let [name, left, right, result] = &row[..] else { continue };
            if DIFFERENT.contains(&name.as_str()) {
                continue;
            }
            let sides = [left, right].into_iter().filter(|oid| *oid != "0");
            let args = sides.map(|oid| param(oid)).collect::<Option<Vec<Param>>>();
            let (Some(args), Some(result)) = (args, param(result)) else { continue };
            all.push(Routine { form: Form::Operator(name.clone()), args, result });
        }
        for row in rows(answers, "select castsource, casttarget from pg_cast order by 1, 2") {
            let [Some(source), Some(target)] = [param(&row[0]), param(&row[1])] else { continue };
            all.push(Routine { form: Form::Cast, args: vec![source], result: target });
        }
        assert!(all.len() > 400, "the catalog has only {} routines", all.len());
        Catalog(all)
    }

    /// All that it has.
    pub fn all(&self) -> &[Routine] {
        &self.0
    }

    /// Those whose result has a kind. Any result can be shown as text.
    pub fn returning(&self, kind: Kind) -> Vec<&Routine> {
        self.0.iter().filter(|routine| routine.result == Param::Is(kind)).collect()
    }
}

fn rows(answers: &mut Answers, sql: &str) -> Vec<Vec<String>> {
    let answer = answers.answer_unlimited(sql);
    let Answer::Rows { rows, .. } = answer else { panic!("{sql}: {answer}") };
    rows.into_iter().map(|row| row.into_iter().map(Option::unwrap_or_default).collect()).collect()
}

fn function(name: &str, args: &str, result: &str, rest: &str, stable: bool) -> Option<Routine> {
    let mut params: Vec<Param> = args.split_whitespace().map(param).collect::<Option<_>>()?;
    if is_left_out(name, &params, stable) {
        return None;
    }
    if rest != "0" {
        *params.last_mut()? = match param(rest)? {
            Param::Is(kind) => Param::Rest(kind),
            _ => Param::RestAny,
        };
    }
    let result = param(result)?;
    Some(Routine { form: Form::Function(name.to_owned()), args: params, result })
}

/// The last digit of a cube root is that of the C library. `width_bucket` of PostgreSQL 15 gives a
/// bucket that there is not where a share is rounded up.
const DIFFERENT: &[&str] = &["||/", "cbrt", "dcbrt", "width_bucket"];

/// Of two texts, these give how far they are apart. In PostgreSQL, that is the C library's.
const DISTANCES: &[&str] = &[
    "bpcharcmp",
    "btbpchar_pattern_cmp",
    "btnamecmp",
    "btnametextcmp",
    "bttext_pattern_cmp",
    "bttextcmp",
    "bttextnamecmp",
    "byteacmp",
    "gin_cmp_tslexeme",
    "jsonb_cmp",
    "uuid_cmp",
];

/// What a function depends on apart from its arguments makes it unfit.
fn is_left_out(name: &str, params: &[Param], stable: bool) -> bool {
    let of_server = ["pg_", "has_", "current_", "row_security", "inet_", "to_reg"];
    let of_today = name == "age" && params.len() == 1;
    DIFFERENT.contains(&name)
        || DISTANCES.contains(&name)
        || of_today
        || (stable && params.is_empty())
        || of_server.iter().any(|start| name.starts_with(start))
}

/// A parameter of a type. `None` for a type of which there are no values here.
fn param(oid: &str) -> Option<Param> {
    match oid {
        "2276" => Some(Param::Any),
        "2283" | "5077" => Some(Param::Element),
        "2277" | "5078" => Some(Param::Array),
        oid => Kind::ALL.iter().find(|kind| kind.oid() == oid).map(|kind| Param::Is(*kind)),
    }
}

impl Routine {
    /// The call with these arguments.
    pub fn call(&self, args: &[String]) -> String {
        match (&self.form, args) {
            (Form::Operator(name), [left, right]) => format!("({left} {name} {right})"),
            (Form::Operator(name), _) => format!("({name} {})", args.join("")),
            (Form::Function(name), _) => format!("\"{name}\"({})", args.join(", ")),
            (Form::Cast, _) => match self.result {
                Param::Is(kind) => format!("({})::{}", args.join(""), kind.name()),
                _ => args.join(""),
            },
        }
    }
}

/// The kind of a column's type.
pub fn kind_of(ty: Type) -> Kind {
    match ty {
        Type::Int => Kind::Int4,
        Type::Big => Kind::Int8,
        Type::Numeric => Kind::Numeric,
        Type::Float => Kind::Float8,
        Type::Text => Kind::Text,
        Type::Bool => Kind::Bool,
        Type::Date => Kind::Date,
    }
}
