//! Names of relations and columns.

use millpond_syntax::tree::{self, Field, QualifiedName, RangeVar};
use smallvec::SmallVec;
use smol_str::SmolStr;

use super::Source;
use crate::error::{Result, SqlError, SqlState};

/// The parts of a name with points.
type Parts = SmallVec<[SmolStr; 3]>;

/// A table's or index's name, or a name of FROM in front of a column's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub schema: Option<SmolStr>,
    pub name: SmolStr,
    /// Where it stands in the statement's text, in bytes.
    pub(crate) location: Option<u32>,
}

impl Name {
    fn from_parts(parts: &[SmolStr], at: u32, source: &Source<'_>) -> Result<Self> {
        if parts.len() > 2
            && let Some(error) = Self::refusal(parts, &parts.join("."), "relation")
        {
            return Err(source.place(error, at));
        }
        let mut parts = parts.iter().rev().cloned();
        let name = parts.next().unwrap_or_default();
        Ok(Name { schema: parts.next(), name, location: Some(at) })
    }

    /// Why these parts are no name: `whole` is the text that has them, a `kind` of name.
    fn refusal(parts: &[SmolStr], whole: &str, kind: &str) -> Option<SqlError> {
        // A database's name in front must be this database's; there is only one.
        match parts {
            [database, _, _] if database != "postgres" => Some(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cross-database references are not implemented: {whole}"),
            )),
            [_, _, _, _, ..] => Some(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("improper {kind} name (too many dotted names): {whole}"),
            )),
            _ => None,
        }
    }

    /// What stands before a column in a name with points, and the column.
    pub(crate) fn of_column<'f>(
        fields: &'f [Field],
        at: u32,
        source: &Source<'_>,
    ) -> Result<(Self, &'f str)> {
        let mut parts = Parts::new();
        for field in fields {
            match field {
                Field::String(name) => parts.push(name.clone()),
                Field::Star => return Err(SqlError::unsupported("a whole row of this form")),
            }
        }
        let (column, table) = match (fields.last(), parts.split_last()) {
            (Some(Field::String(column)), Some((_, table))) => (&**column, table),
            _ => ("", &[][..]),
        };
        if table.len() > 2
            && let Some(error) = Self::refusal(table, &parts.join("."), "qualified")
        {
            return Err(source.place(error, at));
        }
        Ok((Self::from_parts(table, at, source)?, column))
    }

    /// What stands before the star in a name with points.
    pub(crate) fn of_star(fields: &[Field], at: u32, source: &Source<'_>) -> Result<Self> {
        let name = |field: &Field| match field {
            Field::String(name) => Some(name.clone()),
            Field::Star => None,
        };
        let parts: Parts = fields.iter().filter_map(name).collect();
        Self::from_parts(&parts, at, source)
    }

    /// A relation as a statement names it.
    pub fn of_relation(relation: &RangeVar, source: &Source<'_>) -> Result<Self> {
        let qualifiers = relation.catalogname.iter().chain(&relation.schemaname);
        let parts: Parts = qualifiers.chain([&relation.relname]).cloned().collect();
        Self::from_parts(&parts, relation.location, source)
    }

    pub(crate) fn of_relations<'r>(
        relations: impl IntoIterator<Item = &'r RangeVar>,
        source: &Source<'_>,
    ) -> Result<Vec<Self>> {
        relations.into_iter().map(|relation| Self::of_relation(relation, source)).collect()
    }

    /// A name with its qualifiers.
    pub(super) fn qualified(name: &QualifiedName, source: &Source<'_>) -> Result<Self> {
        Self::from_parts(&name.names, name.location, source)
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Names as strings.
pub(crate) fn strings(names: &[tree::Name]) -> Vec<String> {
    names.iter().map(|name| (&**name).into()).collect()
}
