//! The engine's part of the control file.

/// The engine's part of the control file: three numbers, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(super) next_xid: u64,
    pub(super) next_oid: u32,
    pub(super) next_storage: u32,
}

impl State {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut bytes = self.next_xid.to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.next_oid.to_le_bytes());
        bytes.extend_from_slice(&self.next_storage.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (xid, rest) = bytes.split_first_chunk()?;
        let (oid, rest) = rest.split_first_chunk()?;
        let storage = rest.first_chunk()?;
        Some(Self {
            next_xid: u64::from_le_bytes(*xid),
            next_oid: u32::from_le_bytes(*oid),
            next_storage: u32::from_le_bytes(*storage),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_round_trips() {
        let state = State { next_xid: 1 << 40, next_oid: 20_000, next_storage: 30_000 };
        assert_eq!(State::decode(&state.encode()), Some(state));
        assert_eq!(State::decode(&[1; 15]), None);
    }
}
