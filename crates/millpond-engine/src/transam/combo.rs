//! Combo command ids: one number for the two commands by which a transaction made *and* deleted a
//! row version.
//!
//! Only the transaction itself asks for the command ids of its own changes. So the map lives in
//! session memory and is emptied when the transaction ends. A row version with COMBO_CID set whose
//! xmin is not the running transaction is never looked up here.

use std::collections::HashMap;

use crate::error::{EngineError, EngineResult};
use crate::ids::CommandId;

/// The combo ids of one transaction. An id is an index into the pairs.
#[derive(Clone, Debug, Default)]
pub struct ComboCids {
    pairs: Vec<(CommandId, CommandId)>,
    ids: HashMap<(CommandId, CommandId), u32>,
}

impl ComboCids {
    /// The id that stands for "made by command `cmin`, deleted by command `cmax`".
    pub fn id(&mut self, cmin: CommandId, cmax: CommandId) -> EngineResult<CommandId> {
        if let Some(id) = self.ids.get(&(cmin, cmax)) {
            return Ok(CommandId(*id));
        }
        let id = u32::try_from(self.pairs.len()).map_err(|_| EngineError::LimitExceeded {
            what: "a transaction cannot have more than 2^32 pairs of commands",
        })?;
        self.pairs.push((cmin, cmax));
        self.ids.insert((cmin, cmax), id);
        Ok(CommandId(id))
    }

    /// The pair behind an id.
    pub fn pair(&self, id: CommandId) -> EngineResult<(CommandId, CommandId)> {
        self.pairs.get(id.0 as usize).copied().ok_or(EngineError::Internal {
            what: "a row of the running transaction carries an unknown combo command id",
        })
    }

    /// Forgets all ids, at the end of the transaction.
    pub fn clear(&mut self) {
        if !self.pairs.is_empty() {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_get_one_id_each_and_are_forgotten() {
        let mut combos = ComboCids::default();
        let a = combos.id(CommandId(1), CommandId(2)).unwrap();
        let b = combos.id(CommandId(1), CommandId(3)).unwrap();
        assert_ne!(a, b);
        assert_eq!(combos.id(CommandId(1), CommandId(2)).unwrap(), a);
        assert_eq!(combos.pair(b).unwrap(), (CommandId(1), CommandId(3)));
        combos.clear();
        assert!(combos.pair(a).is_err());
    }
}
