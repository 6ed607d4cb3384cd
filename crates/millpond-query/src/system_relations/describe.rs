//! Names of relations, and definitions as SQL text.

use millpond_engine::catalog::{CatalogState, IndexDef, Relation, TableDef};

use super::{find, view_of};
use crate::expr::quoted_name;

/// Constraints have their index's number, moved out of the way of relations.
const CONSTRAINT_OID: u32 = 1 << 30;

/// The number of the constraint that `index` enforces.
pub(crate) fn constraint_oid(index: u32) -> u32 {
    index | CONSTRAINT_OID
}

/// The number of the index that enforces a constraint.
pub fn constraint_index(constraint: u32) -> u32 {
    constraint & !CONSTRAINT_OID
}

/// What `regclass` prints.
pub fn relation_name(catalog: &CatalogState, number: i64) -> String {
    let oid = u32::try_from(number).unwrap_or(0);
    let table = catalog.table(oid).map(|table| quoted_name(&table.name));
    table
        .or_else(|| catalog.index(oid).map(|(_, index)| quoted_name(&index.name)))
        .or_else(|| {
            view_of(oid).map(|view| match view.schema {
                "pg_catalog" => view.name.to_owned(),
                schema => format!("{schema}.{}", view.name),
            })
        })
        .unwrap_or_else(|| if oid == 0 { "-".to_owned() } else { number.to_string() })
}

/// The number of a relation of this name, in this schema or in those that are searched.
pub fn relation_named(catalog: &CatalogState, schema: Option<&str>, name: &str) -> Option<i64> {
    if schema != Some("public")
        && let Some(view) = find(schema.unwrap_or("pg_catalog"), name)
    {
        return Some(i64::from(view.oid));
    }
    if !matches!(schema, None | Some("public")) {
        return None;
    }
    match catalog.relation(name)? {
        Relation::Table(table) => Some(i64::from(table.oid)),
        Relation::Index(_, index) => Some(i64::from(index.oid)),
    }
}

/// The parts of a name with points, each folded unless it is quoted.
pub fn name_parts(name: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = name.trim();
    loop {
        let quoted = rest.starts_with('"');
        let (part, behind) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let mut part = String::new();
                let mut behind = quoted;
                loop {
                    let (text, after) = behind.split_once('"')?;
                    part.push_str(text);
                    match after.strip_prefix('"') {
                        Some(more) => {
                            part.push('"');
                            behind = more;
                        }
                        None => break (part, after),
                    }
                }
            }
            None => {
                let end = rest.find('.').unwrap_or(rest.len());
                (rest[..end].trim().to_lowercase(), &rest[end..])
            }
        };
        if part.is_empty() || !quoted && part.contains(char::is_whitespace) {
            return None;
        }
        parts.push(part);
        match behind.trim_start().strip_prefix('.') {
            Some(next) => rest = next.trim_start(),
            None if behind.trim().is_empty() => return Some(parts),
            None => return None,
        }
    }
}

/// `CREATE INDEX` as text, or the name of the `column`-th column if that is not 0.
pub fn index_definition(table: &TableDef, index: &IndexDef, column: i64) -> String {
    let name = |column: usize| quoted_name(&table.columns[column].name);
    if column > 0 {
        let position = usize::try_from(column - 1).unwrap_or(usize::MAX);
        return index.columns.get(position).map(|key| name(key.column)).unwrap_or_default();
    }
    let columns: Vec<String> = index
        .columns
        .iter()
        .map(|key| {
            let way = match (key.order.descending, key.order.nulls_first) {
                (false, false) => "",
                (false, true) => " NULLS FIRST",
                (true, true) => " DESC",
                (true, false) => " DESC NULLS LAST",
            };
            format!("{}{way}", name(key.column))
        })
        .collect();
    let unique = if index.unique { "UNIQUE " } else { "" };
    format!(
        "CREATE {unique}INDEX {} ON public.{} USING btree ({})",
        quoted_name(&index.name),
        quoted_name(&table.name),
        columns.join(", ")
    )
}

/// `PRIMARY KEY (a)` or `UNIQUE (a)`.
pub fn constraint_definition(table: &TableDef, index: &IndexDef) -> String {
    let kind = if index.primary { "PRIMARY KEY" } else { "UNIQUE" };
    let columns: Vec<String> =
        index.columns.iter().map(|key| quoted_name(&table.columns[key.column].name)).collect();
    format!("{kind} ({})", columns.join(", "))
}

#[cfg(test)]
mod tests {
    use super::name_parts;

    #[test]
    fn names_are_split_at_points_outside_of_quotes() {
        assert_eq!(name_parts("Public.T").unwrap(), ["public", "t"]);
        assert_eq!(name_parts("\"A.b\"\"c\" . d").unwrap(), ["A.b\"c", "d"]);
        for wrong in ["", "a.", "a b", ".a", "\"a", "\"a\"b", "\"\""] {
            assert_eq!(name_parts(wrong), None, "{wrong}");
        }
    }
}
