//! Random expressions of a wanted type over the columns of a scope.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::catalog::{Catalog, Param, Routine, kind_of};
use crate::queries;
use crate::tables::{Type, constant};
use crate::values::Kind;

/// A column as a query names it.
#[derive(Debug, Clone)]
pub struct Column {
    pub sql: String,
    pub ty: Type,
}

/// What makes random queries: the source of chance, what can be called, and the names that are
/// taken.
pub struct Generator<'c> {
    pub rng: StdRng,
    catalog: &'c Catalog,
    names: u32,
}

impl<'c> Generator<'c> {
    pub fn new(seed: u64, catalog: &'c Catalog) -> Self {
        Generator { rng: StdRng::seed_from_u64(seed), catalog, names: 0 }
    }

    /// A new name for a relation.
    pub fn name(&mut self) -> String {
        self.names += 1;
        format!("q{}", self.names)
    }

    /// True once in `times` calls, on average.
    pub fn once_in(&mut self, times: u32) -> bool {
        self.rng.random_ratio(1, times)
    }

    pub fn below(&mut self, end: u32) -> u32 {
        self.rng.random_range(0..end)
    }

    pub fn ty(&mut self) -> Type {
        Type::ALL[self.rng.random_range(0..Type::ALL.len())]
    }

    /// An expression of a type, nested at most so deep.
    pub fn expression(&mut self, scope: &[Column], ty: Type, depth: u32) -> String {
        if depth == 0 || self.once_in(4) {
            return self.leaf(scope, ty);
        }
        match self.below(12) {
            0 => {
                let condition = self.condition(scope, depth - 1);
                let (then, other) = self.two(scope, ty, depth);
                format!("case when {condition} then {then} else {other} end")
            }
            1 => {
                let (first, second) = self.two(scope, ty, depth);
                let function = ["coalesce", "nullif", "greatest", "least"];
                format!("{}({first}, {second})", function[self.below(4) as usize])
            }
            2 => queries::scalar(self, scope, ty, depth - 1),
            3 => self.call_of(scope, ty, depth - 1),
            _ => self.operation(scope, ty, depth),
        }
    }

    fn leaf(&mut self, scope: &[Column], ty: Type) -> String {
        let columns: Vec<&Column> = scope.iter().filter(|column| column.ty == ty).collect();
        if !columns.is_empty() && !self.once_in(4) {
            let column = columns.choose(&mut self.rng);
            return column.map(|column| column.sql.clone()).unwrap_or_default();
        }
        if self.once_in(10) { format!("null::{}", ty.name()) } else { constant(&mut self.rng, ty) }
    }

    fn two(&mut self, scope: &[Column], ty: Type, depth: u32) -> (String, String) {
        (self.expression(scope, ty, depth - 1), self.expression(scope, ty, depth - 1))
    }

    /// A call of the catalog with a result of a type; as text, one with any result.
    fn call_of(&mut self, scope: &[Column], ty: Type, depth: u32) -> String {
        let catalog = self.catalog;
        if ty == Type::Text && self.once_in(3) {
            return format!("({})::text", self.any_call(scope, depth));
        }
        let routines = catalog.returning(kind_of(ty));
        match routines.choose(&mut self.rng) {
            Some(routine) => self.call(routine, scope, depth),
            None => self.leaf(scope, ty),
        }
    }

    /// A call of anything in the catalog.
    pub fn any_call(&mut self, scope: &[Column], depth: u32) -> String {
        let catalog = self.catalog;
        let at = self.rng.random_range(0..catalog.all().len());
        self.call(&catalog.all()[at], scope, depth)
    }

    fn call(&mut self, routine: &Routine, scope: &[Column], depth: u32) -> String {
        let (element, array) =
            [(Kind::Int4, Kind::IntArray), (Kind::Text, Kind::TextArray)][self.below(2) as usize];
        let mut args = Vec::new();
        for param in &routine.args {
            let (kind, count) = match *param {
                Param::Is(kind) => (kind, 1),
                Param::Element => (element, 1),
                Param::Array => (array, 1),
                Param::Any => (self.kind(), 1),
                Param::Rest(kind) => (kind, 1 + self.below(3)),
                Param::RestAny => (self.kind(), 1 + self.below(3)),
            };
            for _ in 0..count {
                args.push(self.argument(kind, scope, depth));
            }
        }
        routine.call(&args)
    }

    fn kind(&mut self) -> Kind {
        Kind::ALL[self.rng.random_range(0..Kind::ALL.len())]
    }

    /// An argument: a constant, a column or another call.
    fn argument(&mut self, kind: Kind, scope: &[Column], depth: u32) -> String {
        let of_kind = |column: &&Column| kind_of(column.ty) == kind;
        let columns: Vec<&Column> = scope.iter().filter(of_kind).collect();
        if !columns.is_empty() && self.once_in(2) {
            let column = columns.choose(&mut self.rng);
            return column.map(|column| column.sql.clone()).unwrap_or_default();
        }
        let catalog = self.catalog;
        if depth > 0 && self.once_in(3) {
            if let Some(routine) = catalog.returning(kind).choose(&mut self.rng) {
                return self.call(routine, scope, depth - 1);
            }
        }
        kind.constant(&mut self.rng)
    }

    /// What is particular to a type.
    fn operation(&mut self, scope: &[Column], ty: Type, depth: u32) -> String {
        let (a, b) = self.two(scope, ty, depth);
        let choice = self.below(6);
        match ty {
            Type::Int => match choice {
                0 => format!("length({})", self.expression(scope, Type::Text, depth - 1)),
                1 => format!("abs({a})"),
                2 => format!("({a} % nullif({b}, 0))"),
                _ => format!("({a} {} {b})", ["+", "-", "*"][self.below(3) as usize]),
            },
            Type::Big => match choice {
                0 | 1 => format!("{}::bigint", self.expression(scope, Type::Int, depth - 1)),
                2 => format!("(- {a})"),
                _ => format!("({a} {} {b})", ["+", "-"][self.below(2) as usize]),
            },
            Type::Numeric => match choice {
                0 => format!("round({a}, 1)"),
                1 => format!("({})::numeric", self.expression(scope, Type::Int, depth - 1)),
                2 => format!("({a} / nullif({b}, 0))"),
                _ => format!("({a} {} {b})", ["+", "-", "*"][self.below(3) as usize]),
            },
            Type::Float => match choice {
                0 | 1 => format!("({})::float8", self.expression(scope, Type::Int, depth - 1)),
                _ => format!("({a} {} {b})", ["+", "-", "*"][self.below(3) as usize]),
            },
            Type::Text => match choice {
                0 => format!("upper({a})"),
                1 => format!("substr({a}, 1, 2)"),
                2 => format!("({})::text", self.expression(scope, Type::Int, depth - 1)),
                _ => format!("({a} || {b})"),
            },
            Type::Bool => format!("({})", self.condition(scope, depth - 1)),
            Type::Date => format!("({a} + {})", self.below(3)),
        }
    }

    /// A condition: an expression that is true, false or NULL.
    pub fn condition(&mut self, scope: &[Column], depth: u32) -> String {
        if depth == 0 {
            return self.comparison(scope, 0);
        }
        match self.below(14) {
            0 | 1 => {
                let (a, b) = (self.condition(scope, depth - 1), self.condition(scope, depth - 1));
                format!("({a} {} {b})", ["and", "or"][self.below(2) as usize])
            }
            2 => format!("(not {})", self.condition(scope, depth - 1)),
            3 => {
                let tested = self.condition(scope, depth - 1);
                let not = ["", "not "][self.below(2) as usize];
                format!(
                    "(({tested}) is {not}{})",
                    ["true", "false", "null"][self.below(3) as usize]
                )
            }
            4 => self.expression(scope, Type::Bool, depth - 1),
            5 | 6 => queries::test(self, scope, depth - 1),
            _ => self.comparison(scope, depth - 1),
        }
    }

    fn comparison(&mut self, scope: &[Column], depth: u32) -> String {
        let ty = self.ty();
        let a = self.expression(scope, ty, depth);
        let other = self.comparable(ty);
        let b = self.expression(scope, other, depth);
        match self.below(12) {
            0 => format!("({a} is {}null)", ["", "not "][self.below(2) as usize]),
            1 => format!("({a} is {}distinct from {b})", ["", "not "][self.below(2) as usize]),
            2 => {
                let c = self.expression(scope, ty, depth);
                format!("({a} between {b} and {c})")
            }
            3 => {
                let c = self.leaf(scope, ty);
                // The parser takes a list that begins with a subquery for that subquery.
                format!("({a} {}in ({c}, {b}))", ["", "not "][self.below(2) as usize])
            }
            4 => {
                let text = self.expression(scope, Type::Text, depth);
                let pattern = ["'a%'", "'%b'", "'_'", "'%'", "''"][self.below(5) as usize];
                format!("({text} like {pattern})")
            }
            5 => {
                let (c, d) = (self.leaf(scope, Type::Int), self.leaf(scope, Type::Int));
                let operator = ["=", "<", ">=", "<>"][self.below(4) as usize];
                format!("(({a}, {c}) {operator} ({b}, {d}))")
            }
            _ => {
                let operator = ["=", "=", "=", "<", ">", "<=", ">=", "<>"][self.below(8) as usize];
                format!("({a} {operator} {b})")
            }
        }
    }

    /// A type that compares with this one, most often itself.
    fn comparable(&mut self, ty: Type) -> Type {
        match (ty, self.below(4)) {
            (Type::Int, 0) => Type::Big,
            (Type::Int, 1) => Type::Numeric,
            (Type::Big, 0) => Type::Int,
            (Type::Numeric, 0) => Type::Float,
            _ => ty,
        }
    }
}
