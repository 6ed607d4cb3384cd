//! The extended protocol: named statements and portals are prepared, bound, described and executed.

use super::sink::{Stream, WireSink};
use super::{Call, Pending, PortalEntry, Protocol, Step, violation};
use crate::backend::{Backend, Session};
use crate::wire::buffer::Output;
use crate::wire::frontend::{Bind, Formats, Oids, Target};
use crate::wire::rows::ResultFormats;
use crate::wire::{reply, rows};
use millpond::types::FormatOptions;
use millpond::{DataType, Executed, Params, Result, SqlError, SqlState};

/// The type `unknown`, of literals without a declared type. Treated like no type.
const UNKNOWN_OID: u32 = 705;

impl<B: Backend> Protocol<B> {
    pub(super) fn parse(
        &mut self,
        name: &str,
        sql: &str,
        types: Oids<'_>,
        out: &mut Output,
    ) -> Step {
        match types.iter().map(data_type).collect::<Result<Vec<_>>>() {
            Ok(types) => self.prepare(name, sql, &types, out),
            Err(error) => self.extended(Err(error), out),
        }
    }

    /// Prepares a statement.
    pub(super) fn prepare(
        &mut self,
        name: &str,
        sql: &str,
        types: &[Option<DataType>],
        out: &mut Output,
    ) -> Step {
        match self.try_prepare(name, sql, types) {
            Ok(statement) => {
                self.statements.insert(name, statement);
                self.reply(Ok(()), b'1', out)
            }
            Err(error) => self.extended(Err(error), out),
        }
    }

    fn try_prepare(
        &mut self,
        name: &str,
        sql: &str,
        types: &[Option<DataType>],
    ) -> Result<<B::Session as Session>::Statement> {
        if name.is_empty() {
            self.statements.remove("");
        } else if self.statements.get(name).is_some() {
            return Err(SqlError::new(
                SqlState::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        let session = self.session.as_mut().ok_or_else(no_session)?;
        session.prepare(sql, types)
    }

    pub(super) fn bind(&mut self, bind: &Bind<'_>) -> Result<()> {
        let statement = self.statements.get(bind.statement);
        let statement = statement.ok_or_else(|| no_statement(bind.statement))?;
        let types = <B::Session as Session>::params(statement);
        let columns = <B::Session as Session>::columns(statement).map_or(0, |c| c.len());
        if !bind.portal.is_empty() && self.portals.get(bind.portal).is_some() {
            return Err(SqlError::new(
                SqlState::DUPLICATE_CURSOR,
                format!("cursor \"{}\" already exists", bind.portal),
            ));
        }
        let session = self.session.as_mut().ok_or_else(no_session)?;
        let params = params(bind, types, &session.format_options())?;
        let formats = result_formats(bind.result_formats, columns)?;
        let portal = session.bind(statement, params)?;
        self.portals.insert(bind.portal, PortalEntry { portal, formats });
        Ok(())
    }

    pub(super) fn describe(&mut self, target: Target, name: &str, out: &mut Output) -> Result<()> {
        let out = &mut out.bytes;
        let (columns, formats) = match target {
            Target::Statement => {
                let statement = self.statements.get(name).ok_or_else(|| no_statement(name))?;
                let types = <B::Session as Session>::params(statement);
                reply::parameter_description(out, types.iter().map(|t| t.oid()));
                (<B::Session as Session>::columns(statement), &ResultFormats::Text)
            }
            Target::Portal => {
                let entry = self.portals.get(name).ok_or_else(|| no_portal(name))?;
                let statement = <B::Session as Session>::statement(&entry.portal);
                (<B::Session as Session>::columns(statement), &entry.formats)
            }
        };
        match columns {
            Some(columns) => reply::row_description(out, columns, |i| formats.of(i)),
            None => reply::bare(out, b'n'),
        }
        Ok(())
    }

    pub(super) fn close(&mut self, target: Target, name: &str) {
        match target {
            Target::Statement => self.statements.remove(name),
            Target::Portal => self.portals.remove(name),
        }
    }

    pub(super) fn execute(
        &mut self,
        name: &str,
        max_rows: u64,
        out: &mut Output,
        stream: Option<Stream<'_>>,
    ) -> Step {
        let Some(session) = &mut self.session else { return Step::Close };
        let Some(entry) = self.portals.get_mut(name) else {
            return self.extended(Err(no_portal(name)), out);
        };
        let statement = <B::Session as Session>::statement(&entry.portal);
        if let Some(columns) = <B::Session as Session>::columns(statement) {
            self.codec.set(columns, &entry.formats, session.format_options());
        }
        let mut sink = WireSink::portal(out, stream, &mut self.codec);
        let result = session.execute_portal(&mut entry.portal, max_rows, &mut sink);
        if let Ok(Executed::WouldBlock) = result {
            self.pending = Some(Pending::Execute(name.to_owned(), max_rows));
            return Step::Block;
        }
        self.ended(Call::Portal, result, out)
    }
}

fn data_type(oid: u32) -> Result<Option<DataType>> {
    if oid == 0 || oid == UNKNOWN_OID {
        return Ok(None);
    }
    match DataType::from_oid(oid, -1) {
        // Whether it is an object's name or its number shows when it is bound.
        Some(found) if found.names_objects() => Ok(None),
        Some(found) => Ok(Some(found)),
        None => Err(SqlError::unsupported(format_args!("a parameter of the type with OID {oid}"))),
    }
}

#[inline]
fn params(bind: &Bind<'_>, types: &[DataType], options: &FormatOptions) -> Result<Params> {
    let count = bind.params.count();
    let codes = bind.formats.count();
    if codes > 1 && codes != count {
        return Err(violation(format!(
            "bind message has {codes} parameter formats but {count} parameters"
        )));
    }
    if count != types.len() {
        return Err(violation(format!(
            "bind message supplies {count} parameters, but prepared statement \"{}\" requires {}",
            bind.statement,
            types.len()
        )));
    }
    // One pass over the codes; looking up code n for each parameter would be quadratic.
    let first = bind.formats.of(0);
    let mut codes = bind.formats.iter();
    let mut params = Params::with_capacity(count);
    for (i, (value, ty)) in bind.params.iter().zip(types).enumerate() {
        let code = codes.next().unwrap_or(first);
        params.push(rows::param(value, code, *ty, i, options)?);
    }
    Ok(params)
}

fn result_formats(codes: Formats<'_>, columns: usize) -> Result<ResultFormats> {
    if codes.count() > 1 && codes.count() != columns {
        return Err(violation(format!(
            "bind message has {} result formats but query has {columns} columns",
            codes.count()
        )));
    }
    if let Some(code) = codes.iter().find(|c| !matches!(c, 0 | 1)) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid format code: {code}"),
        ));
    }
    Ok(match (codes.iter().any(|c| c == 0), codes.iter().any(|c| c == 1)) {
        (_, false) => ResultFormats::Text,
        (false, true) => ResultFormats::Binary,
        (true, true) => ResultFormats::Each(codes.iter().collect()),
    })
}

fn no_session() -> SqlError {
    SqlError::internal("the session has not started")
}

fn no_statement(name: &str) -> SqlError {
    let message = match name {
        "" => "unnamed prepared statement does not exist".to_owned(),
        _ => format!("prepared statement \"{name}\" does not exist"),
    };
    SqlError::new(SqlState::INVALID_SQL_STATEMENT_NAME, message)
}

fn no_portal(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist"))
}
