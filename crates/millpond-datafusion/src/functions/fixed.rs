//! Functions whose answers depend on their arguments alone.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType as Arrow;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::ScalarUDF;

use super::arrays;
use super::scalar::{function, number, text, utf8, utf8_or_null};
use millpond_query::expr::{format_type, quoted_name};

/// The functions.
pub fn all() -> Vec<Arc<ScalarUDF>> {
    [plain(), alike(), of_arrays(), of_types(), of_the_only_ones()].concat()
}

/// Of versions, schemas, names and sizes.
fn plain() -> Vec<Arc<ScalarUDF>> {
    vec![
        function("version", (0, 0), Arrow::Utf8, |_| Ok(utf8(millpond_query::VERSION_STRING))),
        function("current_schema", (0, 0), Arrow::Utf8, |_| Ok(utf8("public"))),
        function("current_schemas", (1, 1), Arrow::Utf8, |args| {
            let implicit = matches!(args[0], ScalarValue::Boolean(Some(true)));
            let path: &[&str] = if implicit { &["pg_catalog", "public"] } else { &["public"] };
            Ok(utf8(arrays::literal(path.iter().copied())))
        }),
        function("pg_get_userbyid", (1, 1), Arrow::Utf8, |_| Ok(utf8("postgres"))),
        function("pg_encoding_to_char", (1, 1), Arrow::Utf8, |_| Ok(utf8("UTF8"))),
        function("pg_is_in_recovery", (0, 0), Arrow::Boolean, |_| Ok(ScalarValue::from(false))),
        // Expressions are stored as text.
        function("pg_get_expr", (2, 3), Arrow::Utf8, |args| Ok(utf8_or_null(text(args, 0)))),
        function("quote_ident", (1, 1), Arrow::Utf8, |args| {
            Ok(utf8_or_null(text(args, 0).map(|name| quoted_name(&name))))
        }),
        function("pg_size_pretty", (1, 1), Arrow::Utf8, |args| {
            Ok(utf8_or_null(number(args, 0).map(pretty_size)))
        }),
    ]
}

/// Those that have one answer for whatever exists.
fn alike() -> Vec<Arc<ScalarUDF>> {
    let mut all = Vec::new();
    for name in ["obj_description", "col_description", "shobj_description"] {
        all.push(function(name, (1, 2), Arrow::Utf8, |_| Ok(ScalarValue::Utf8(None))));
    }
    for name in [
        "pg_table_is_visible",
        "pg_type_is_visible",
        "pg_function_is_visible",
        "pg_relation_is_publishable",
    ] {
        all.push(function(name, (1, 1), Arrow::Boolean, |args| {
            Ok(ScalarValue::Boolean(number(args, 0).map(|_| true)))
        }));
    }
    for name in [
        "has_table_privilege",
        "has_schema_privilege",
        "has_database_privilege",
        "has_column_privilege",
        "has_any_column_privilege",
        "pg_has_role",
    ] {
        all.push(function(name, (2, 4), Arrow::Boolean, |_| Ok(ScalarValue::from(true))));
    }
    all
}

/// Of arrays, which are text here.
fn of_arrays() -> Vec<Arc<ScalarUDF>> {
    vec![
        function("array_to_string", (2, 3), Arrow::Utf8, |args| {
            let separator = text(args, 1).unwrap_or_default();
            Ok(utf8_or_null(text(args, 0).map(|array| arrays::elements(&array).join(&separator))))
        }),
        function("array_contains_text", (2, 2), Arrow::Boolean, |args| {
            let found = text(args, 0)
                .zip(text(args, 1))
                .map(|(array, wanted)| arrays::elements(&array).contains(&wanted));
            Ok(ScalarValue::Boolean(found))
        }),
        function("array_position", (2, 3), Arrow::Int32, |args| {
            let position = text(args, 0).zip(text(args, 1)).and_then(|(array, wanted)| {
                arrays::elements(&array).iter().position(|element| *element == wanted)
            });
            Ok(ScalarValue::Int32(position.map(|position| position as i32 + 1)))
        }),
        function("cardinality", (1, 1), Arrow::Int32, |args| {
            let count = text(args, 0).map(|array| arrays::elements(&array).len() as i32);
            Ok(ScalarValue::Int32(count))
        }),
        function("array_upper", (2, 2), Arrow::Int32, |args| {
            let length = text(args, 0).map(|array| arrays::elements(&array).len() as i32);
            Ok(ScalarValue::Int32(length.filter(|&length| length > 0)))
        }),
    ]
}

/// Of types.
fn of_types() -> Vec<Arc<ScalarUDF>> {
    let type_oid = |name| {
        function(name, (1, 1), Arrow::Int64, |args| {
            let named = |name: String| millpond_query::system_relations::type_oid(&name);
            Ok(ScalarValue::Int64(text(args, 0).and_then(named)))
        })
    };
    vec![
        function("format_type", (2, 2), Arrow::Utf8, |args| {
            type_text(number(args, 0), number(args, 1))
        }),
        function("regtype_name", (1, 1), Arrow::Utf8, |args| type_text(number(args, 0), None)),
        type_oid("to_regtype"),
        type_oid("regtype_oid"),
    ]
}

/// Of schemas and roles, of which there is one each, beside the system's schema.
fn of_the_only_ones() -> Vec<Arc<ScalarUDF>> {
    let mut all = Vec::new();
    for (kind, oid, name) in [("regnamespace", 2200, "public"), ("regrole", 10, "postgres")] {
        all.push(function(&format!("{kind}_name"), (1, 1), Arrow::Utf8, move |args| {
            let shown = number(args, 0).map(|given| match given {
                11 => "pg_catalog".to_owned(),
                given if given == oid => name.to_owned(),
                other => other.to_string(),
            });
            Ok(utf8_or_null(shown))
        }));
        all.push(function(&format!("{kind}_oid"), (1, 1), Arrow::Int64, move |args| {
            let given = text(args, 0).map(|given| if given == "pg_catalog" { 11 } else { oid });
            Ok(ScalarValue::Int64(given))
        }));
    }
    all
}

/// A type as declarations name it.
fn type_text(oid: Option<i64>, typmod: Option<i64>) -> DfResult<ScalarValue> {
    let typmod = typmod.and_then(|typmod| i32::try_from(typmod).ok());
    let name = oid.map(|oid| format_type(oid, typmod)).transpose();
    name.map(utf8_or_null).map_err(|error| DataFusionError::External(Box::new(error)))
}

/// As PostgreSQL prints sizes: below ten thousand of a unit in that unit, rounded half up.
fn pretty_size(bytes: i64) -> String {
    let mut size = bytes;
    for (index, unit) in ["bytes", "kB", "MB", "GB", "TB", "PB"].iter().enumerate() {
        let limit = if index == 0 { 10 * 1024 } else { 20 * 1024 - 1 };
        if size.abs() < limit || *unit == "PB" {
            let shown = if index == 0 { size } else { (size + size.signum()) / 2 };
            return format!("{shown} {unit}");
        }
        // Each step keeps one extra bit, for rounding at the end.
        size >>= if index == 0 { 9 } else { 10 };
    }
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_printed_as_postgresql_prints_them() {
        let cases = [
            (8192, "8192 bytes"),
            (10 * 1024, "10 kB"),
            (16384, "16 kB"),
            (10_485_760, "10 MB"),
            (1_342_177_280, "1280 MB"),
            (0, "0 bytes"),
        ];
        for (bytes, shown) in cases {
            assert_eq!(pretty_size(bytes), shown);
        }
    }

    #[test]
    fn names_are_quoted_where_they_need_it() {
        assert_eq!(quoted_name("plain_1"), "plain_1");
        assert_eq!(quoted_name("Mixed \"x\""), "\"Mixed \"\"x\"\"\"");
    }
}
