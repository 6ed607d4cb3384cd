//! Values of settings as statements set them.

use super::session::{Block, SqlSession};
use millpond_query::error::{Result, SqlError};
use millpond_query::settings::SettingName;

impl SqlSession {
    /// Sets a setting, or with no value resets it. With `local` it lasts for the transaction.
    pub(super) fn set_setting(
        &mut self,
        name: &str,
        value: Option<&str>,
        local: bool,
    ) -> Result<()> {
        let name = SettingName::of(name)?;
        match name.as_str() {
            "transaction_isolation" | "transaction_read_only" => {
                return Err(SqlError::unsupported(format!("SET {}", name.as_str()))
                    .hint("Use SET TRANSACTION."));
            }
            "shared_buffers" => return self.resize_buffers(value, local),
            "default_transaction_isolation" if value == Some("serializable") => {
                return Err(SqlError::unsupported("isolation level SERIALIZABLE"));
            }
            _ => {}
        }
        self.setting_in_script()?;
        self.settings.set(&name, value, local)?;
        self.settings_changed();
        Ok(())
    }

    /// Settings are about to be changed. The statements of a text are one transaction, of which
    /// that is a part.
    pub(super) fn setting_in_script(&mut self) -> Result<()> {
        if self.in_script { self.need_transaction() } else { Ok(()) }
    }

    /// Settings have been changed. Where no transaction will say whether they last, they do.
    pub(super) fn settings_changed(&mut self) {
        if self.block == Block::Idle {
            self.settings.end_transaction(true);
        }
        self.hand_on_settings();
    }

    /// Takes over the settings that a statement's functions have set, unless the statement failed.
    #[cold]
    pub(super) fn set_as_called(&mut self, succeeded: bool) -> Result<()> {
        for call in self.settings.take_calls() {
            if succeeded {
                self.set_setting(call.name.as_str(), call.text.as_deref(), call.local)?;
            }
        }
        Ok(())
    }

    /// Changes the size of the buffer pool, at once and for all sessions.
    fn resize_buffers(&mut self, value: Option<&str>, local: bool) -> Result<()> {
        if local {
            return Err(SqlError::unsupported("SET LOCAL shared_buffers"));
        }
        self.check_first("SET shared_buffers", false)?;
        let pages = self.settings.buffers_wanted(value)?;
        self.need_wait()?;
        let resized = self.engine.maintenance().resize_buffers(pages);
        // Also when it could not be made as small as it should be.
        self.settings.set_live_buffers(self.database.engine().pool().frames());
        Ok(resized?)
    }
}
