//! SET, SHOW, RESET, ALTER SYSTEM and SET TRANSACTION.

use crate::conn::session::{Block, SqlSession};
use crate::conn::transaction::isolation;
use crate::{DataType, Datum};
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::parse::{IsolationLevel, TransactionModes, Which};
use millpond_query::settings::{SettingId, SettingName};
use millpond_query::sink::{ColumnDesc, CommandTag, RowSink};

pub(super) fn set(
    session: &mut SqlSession,
    name: &str,
    value: Option<&str>,
    local: bool,
    sink: &mut dyn RowSink,
) -> Result<CommandTag> {
    if local && session.block != Block::Explicit && !session.in_script {
        sink.notice(&SqlError::warning(
            SqlState::NO_ACTIVE_SQL_TRANSACTION,
            "SET LOCAL can only be used in transaction blocks",
        ));
    }
    session.set_setting(name, value, local)?;
    Ok(CommandTag::plain("SET"))
}

pub(super) fn reset(session: &mut SqlSession, which: &Which) -> Result<CommandTag> {
    match which {
        Which::All => {
            session.setting_in_script()?;
            session.settings.reset_all();
            session.settings_changed();
        }
        Which::Named(name) => session.set_setting(name, None, false)?,
    }
    Ok(CommandTag::plain("RESET"))
}

pub(super) fn alter_system(
    session: &mut SqlSession,
    name: Option<&str>,
    value: Option<&str>,
) -> Result<CommandTag> {
    session.check_alone("ALTER SYSTEM")?;
    session.need_wait()?;
    session.database.configuration().alter_system(name, value)?;
    Ok(CommandTag::plain("ALTER SYSTEM"))
}

/// The columns that SHOW returns.
pub(in crate::conn) fn show_columns(which: &Which) -> Result<Vec<ColumnDesc>> {
    let text = |name: &str| ColumnDesc::computed(name, DataType::Text);
    Ok(match which {
        Which::All => vec![text("name"), text("setting"), text("description")],
        Which::Named(name) => vec![text(SettingName::of(name)?.as_str())],
    })
}

pub(super) fn show(
    session: &mut SqlSession,
    which: &Which,
    columns: bool,
    sink: &mut dyn RowSink,
) -> Result<CommandTag> {
    let value = |id: SettingId| match session.show_transaction(id.definition().name) {
        Some(value) => value,
        None => session.settings.show(id),
    };
    let rows = match which {
        Which::All => {
            let of = |id: SettingId| {
                let definition = id.definition();
                vec![definition.name.to_owned(), value(id), definition.about.to_owned()]
            };
            SettingId::all().map(of).collect()
        }
        Which::Named(name) => vec![vec![match SettingName::of(name)? {
            SettingName::Registered(id) => value(id),
            custom => session.settings.show_named(&custom)?,
        }]],
    };
    if columns {
        sink.columns(&show_columns(which)?)?;
    }
    for row in &rows {
        sink.row(&row.iter().map(|text| Datum::Text(text)).collect::<Vec<_>>())?;
    }
    Ok(CommandTag::plain("SHOW"))
}

pub(super) fn set_transaction(
    session: &mut SqlSession,
    modes: TransactionModes,
    for_session: bool,
    sink: &mut dyn RowSink,
) -> Result<CommandTag> {
    if for_session {
        if let Some(level) = modes.isolation {
            isolation(level)?;
            let word = match level {
                IsolationLevel::ReadUncommitted => "read uncommitted",
                IsolationLevel::ReadCommitted => "read committed",
                IsolationLevel::RepeatableRead => "repeatable read",
                IsolationLevel::Serializable => "serializable",
            };
            session.set_setting("default_transaction_isolation", Some(word), false)?;
        }
        if let Some(read_only) = modes.read_only {
            let word = if read_only { "on" } else { "off" };
            session.set_setting("default_transaction_read_only", Some(word), false)?;
        }
        if let Some(deferrable) = modes.deferrable {
            let word = if deferrable { "on" } else { "off" };
            session.set_setting("default_transaction_deferrable", Some(word), false)?;
        }
    } else if session.block == Block::Explicit || session.in_script {
        // The statements of one text are a transaction, too.
        session.need_transaction()?;
        session.set_modes(modes)?;
    } else {
        sink.notice(&SqlError::warning(
            SqlState::NO_ACTIVE_SQL_TRANSACTION,
            "SET TRANSACTION can only be used in transaction blocks",
        ));
    }
    Ok(CommandTag::plain("SET"))
}
