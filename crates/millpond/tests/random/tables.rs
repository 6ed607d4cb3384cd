//! The tables that random queries read: few values, so that they meet, with NULLs and extremes.

use rand::Rng;
use rand::rngs::StdRng;

/// The types of columns and expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Int,
    Big,
    Numeric,
    Float,
    Text,
    Bool,
    Date,
}

impl Type {
    pub const ALL: [Type; 7] =
        [Type::Int, Type::Big, Type::Numeric, Type::Float, Type::Text, Type::Bool, Type::Date];

    pub fn name(self) -> &'static str {
        match self {
            Type::Int => "int",
            Type::Big => "bigint",
            Type::Numeric => "numeric",
            Type::Float => "float8",
            Type::Text => "text",
            Type::Bool => "bool",
            Type::Date => "date",
        }
    }
}

/// A table: its name, columns, rest of the definition, indexes, and number of rows.
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [(&'static str, Type)],
    key: &'static str,
    indexes: &'static [&'static str],
    rows: usize,
}

pub const TABLES: &[Table] = &[
    Table {
        name: "r",
        columns: &[
            ("id", Type::Int),
            ("a", Type::Int),
            ("b", Type::Big),
            ("n", Type::Numeric),
            ("s", Type::Text),
            ("f", Type::Float),
            ("p", Type::Bool),
            ("d", Type::Date),
        ],
        key: "primary key (id)",
        indexes: &["a", "s, a"],
        rows: 24,
    },
    Table {
        name: "t",
        columns: &[("id", Type::Int), ("a", Type::Int), ("s", Type::Text), ("n", Type::Numeric)],
        key: "primary key (id)",
        indexes: &["n"],
        rows: 12,
    },
    Table {
        name: "u",
        columns: &[("a", Type::Int), ("b", Type::Big), ("p", Type::Bool), ("d", Type::Date)],
        key: "",
        indexes: &["b, a"],
        rows: 16,
    },
    Table {
        name: "w",
        columns: &[("k", Type::Int), ("id", Type::Int), ("v", Type::Int)],
        key: "primary key (k, id)",
        indexes: &["v"],
        rows: 60,
    },
    Table {
        name: "z",
        columns: &[("id", Type::Int), ("a", Type::Int), ("s", Type::Text)],
        key: "primary key (id)",
        indexes: &[],
        rows: 0,
    },
];

/// A table that only joins with conditions read: other queries would join all of its rows with all
/// of theirs.
pub const LARGE: Table = Table {
    name: "l",
    columns: &[
        ("id", Type::Int),
        ("a", Type::Int),
        ("b", Type::Big),
        ("s", Type::Text),
        ("d", Type::Date),
        ("p", Type::Bool),
    ],
    key: "primary key (id)",
    indexes: &["b"],
    rows: 300,
};

/// The statements that make the tables and fill them.
pub fn script(rng: &mut StdRng) -> Vec<String> {
    script_with(rng, None)
}

/// The same, with a column behind the others that fills a page with each row.
pub fn wide_script(rng: &mut StdRng) -> Vec<String> {
    script_with(rng, Some("repeat('x', 5000)"))
}

fn script_with(rng: &mut StdRng, last: Option<&str>) -> Vec<String> {
    let mut statements = Vec::new();
    for table in TABLES.iter().chain([&LARGE]) {
        let mut columns: Vec<String> =
            table.columns.iter().map(|(name, ty)| format!("{name} {}", ty.name())).collect();
        columns.extend(last.map(|_| "last text".to_owned()));
        let key = if table.key.is_empty() { String::new() } else { format!(", {}", table.key) };
        statements.push(format!("create table {} ({}{key})", table.name, columns.join(", ")));
        for index in table.indexes {
            statements.push(format!("create index on {} ({index})", table.name));
        }
        let rows: Vec<String> = (0..table.rows).map(|row| values(rng, table, row, last)).collect();
        if !rows.is_empty() {
            statements.push(format!("insert into {} values {}", table.name, rows.join(", ")));
        }
    }
    // Estimates come from statistics, or from none.
    if rng.random_bool(0.5) {
        statements.push("analyze".to_owned());
    }
    statements
}

/// A row of a table. Its key follows from its number.
fn values(rng: &mut StdRng, table: &Table, row: usize, last: Option<&str>) -> String {
    let mut fields: Vec<String> = table
        .columns
        .iter()
        .map(|(name, ty)| match *name {
            "id" => row.to_string(),
            "k" => (row % 4).to_string(),
            _ if rng.random_ratio(1, 5) => "null".to_owned(),
            _ => constant(rng, *ty),
        })
        .collect();
    fields.extend(last.map(str::to_owned));
    format!("({})", fields.join(", "))
}

/// A constant of a type, that is not NULL.
pub fn constant(rng: &mut StdRng, ty: Type) -> String {
    let extreme = rng.random_ratio(1, 12);
    let choices: &[&str] = match (ty, extreme) {
        (Type::Int, false) => &["0", "1", "2", "3", "4", "-1", "7"],
        (Type::Int, true) => &["2147483647", "(-2147483647)", "1000000"],
        (Type::Big, false) => &["0::bigint", "1::bigint", "2::bigint", "3::bigint", "5::bigint"],
        (Type::Big, true) => &["9223372036854775807", "(-9223372036854775807)", "2147483648"],
        (Type::Numeric, false) => &["0.0", "1.0", "1.5", "2.00", "2.5", "-1.0", "10.25"],
        (Type::Numeric, true) => {
            &["'nan'::numeric", "'infinity'::numeric", "123456789012345678901234567890.5", "1e-20"]
        }
        (Type::Float, false) => &["0::float8", "1::float8", "1.5::float8", "2::float8"],
        (Type::Float, true) => &["'nan'::float8", "'-infinity'::float8", "1e300::float8"],
        (Type::Text, false) => &["''", "'a'", "'b'", "'ab'", "'B'", "'1'"],
        (Type::Text, true) => &["'ä'", "'a '", "'zzzzzzzzzzzzzzzzzzzz'", "'%_'"],
        (Type::Bool, _) => &["true", "false"],
        (Type::Date, false) => &["date '2024-02-29'", "date '2024-03-01'", "date '1999-12-31'"],
        (Type::Date, true) => &["date 'infinity'", "date '0001-01-01'"],
    };
    choices[rng.random_range(0..choices.len())].to_owned()
}
