//! Expressions that say in PostgreSQL's words what DataFusion knows under others.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    SetExpr, TableFactor, TableWithJoins, Value,
};

use super::{call, empty, last_part, literal, strip_schema};

/// Rewrites one expression whose parts are already rewritten.
pub fn expr(expr: &mut Expr) {
    match expr {
        Expr::BinaryOp { left, op, right } => {
            if let BinaryOperator::PGCustomBinaryOperator(path) = op
                && let Some(known) = path.last().and_then(|name| operator(name))
            {
                *op = known;
            }
            // Appending the elements of an empty array.
            if *op == BinaryOperator::StringConcat && **right == literal("{}") {
                *expr = take(left);
            }
        }
        // Every collation here is "C"; psql writes COLLATE pg_catalog.default.
        Expr::Collate { expr: inner, .. } => *expr = take(inner),
        Expr::Function(function) => {
            strip_schema(&mut function.name, &["pg_catalog", "information_schema"]);
            relation_of_its_name(function);
            // CURRENT_DATABASE and its like may come without parentheses.
            if matches!(function.args, FunctionArguments::None)
                && let Some(name) = last_part(&function.name)
                && matches!(
                    name.as_str(),
                    "current_user"
                        | "session_user"
                        | "user"
                        | "current_role"
                        | "current_catalog"
                        | "current_schema"
                )
            {
                *expr = call(&name, Vec::new());
            }
        }
        Expr::Cast { .. } => cast(expr),
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => {
            let (left, right) = (take(left), take(right));
            *expr = equals_any(left, right);
        }
        _ => {}
    }
    if let Expr::Function(function) = expr
        && last_part(&function.name).as_deref() == Some("array")
        && let FunctionArguments::Subquery(query) = &function.args
        && let SetExpr::Select(select) = query.body.as_ref()
        && (empty::reads_nothing(select) || select.from.iter().all(unnests))
    {
        *expr = literal("{}");
    }
}

/// Whether a `FROM` unnests an array. The catalogs' arrays that psql unnests are options of tables
/// that hold other tables' long values. There are no such tables.
fn unnests(from: &TableWithJoins) -> bool {
    match &from.relation {
        TableFactor::UNNEST { .. } => true,
        TableFactor::Table { name, args: Some(_), .. } => {
            last_part(name).as_deref() == Some("unnest")
        }
        TableFactor::Function { name, .. } => last_part(name).as_deref() == Some("unnest"),
        _ => false,
    }
}

fn operator(name: &str) -> Option<BinaryOperator> {
    Some(match name {
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "=" => BinaryOperator::Eq,
        "<>" | "!=" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "||" => BinaryOperator::StringConcat,
        _ => return None,
    })
}

fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::Value(Value::Null.into()))
}

/// A literal where a function takes a relation is the relation's name, as if it were cast to
/// `regclass`.
fn relation_of_its_name(function: &mut Function) {
    let takes_relation = matches!(
        last_part(&function.name).as_deref(),
        Some(
            "pg_relation_size"
                | "pg_table_size"
                | "pg_indexes_size"
                | "pg_total_relation_size"
                | "pg_relation_filenode"
        )
    );
    if takes_relation
        && let FunctionArguments::List(list) = &mut function.args
        && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(relation))) = list.args.first_mut()
        && is_text(relation)
    {
        *relation = call("regclass_oid", vec![take(relation)]);
    }
}

fn is_text(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_))
    )
}

/// Casts to types that only the catalogs have.
fn cast(expr: &mut Expr) {
    let Expr::Cast { expr: inner, data_type, .. } = expr else { return };
    let Some(name) = type_name(data_type) else { return };
    match name.as_str() {
        // A name stands for a number (`'t'::regclass`), a number is shown as a name
        // (`oid::regclass`).
        "regclass" | "regtype" | "regnamespace" | "regrole" | "regproc" => {
            let direction = if is_text(inner) { "oid" } else { "name" };
            *expr = call(&format!("{name}_{direction}"), vec![take(inner)]);
        }
        "oid" | "xid" | "cid" => {
            if let Expr::Function(function) = inner.as_ref()
                && last_part(&function.name).is_some_and(|name| name.ends_with("_oid"))
            {
                *expr = take(inner);
            } else {
                *data_type = DataType::BigInt(None);
            }
        }
        "name" | "char" | "text" | "cstring" => *data_type = DataType::Text,
        "int2" => *data_type = DataType::SmallInt(None),
        "int4" => *data_type = DataType::Integer(None),
        "int8" => *data_type = DataType::BigInt(None),
        "bool" => *data_type = DataType::Boolean,
        _ => {}
    }
}

/// The bare name of a type that the parser does not know or that stands in a schema.
fn type_name(data_type: &DataType) -> Option<String> {
    match data_type {
        DataType::Regclass => Some("regclass".to_owned()),
        DataType::Custom(name, _) => last_part(name),
        _ => None,
    }
}

/// `left = ANY (right)`. Arrays of the catalogs are text in the form of array literals.
fn equals_any(left: Expr, right: Expr) -> Expr {
    match right {
        Expr::Array(array) => {
            Expr::InList { expr: Box::new(left), list: array.elem, negated: false }
        }
        Expr::Nested(inner) => equals_any(left, *inner),
        Expr::Subquery(subquery) => {
            Expr::InSubquery { expr: Box::new(left), subquery, negated: false }
        }
        right => call("array_contains_text", vec![right, left]),
    }
}
