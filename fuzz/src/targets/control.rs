//! The control file and the catalog.

use millpond_buffer::{Lsn, PAGE_SIZE};
use millpond_engine::control::{Control, FORMAT_VERSION};
use millpond_engine::fuzzing;

use crate::bytes::Bytes;

/// A copy of the control file: as it is, and with a correct checksum.
pub fn control(input: &[u8]) {
    let mut copy = [0; 512];
    for (to, from) in copy.iter_mut().zip(input) {
        *to = *from;
    }
    let _ = fuzzing::control(&copy);
    copy[..8].copy_from_slice(b"millpond");
    if input.first().is_some_and(|first| first & 1 == 0) {
        copy[12..16].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        copy[16..20].copy_from_slice(&(PAGE_SIZE as u32).to_le_bytes());
    }
    copy[8..12].fill(0);
    let checksum = crc_fast::crc32_iscsi(&copy);
    copy[8..12].copy_from_slice(&checksum.to_le_bytes());
    if let Ok(control) = fuzzing::control(&copy) {
        let again = fuzzing::control(&fuzzing::control_bytes(&control));
        assert!(again.is_ok_and(|again| again == control), "a copy is written as it was read");
        fuzzing::engine_state(&control.state);
    }
    fuzzing::engine_state(input);
}

pub fn control_seeds() -> Vec<Vec<u8>> {
    let control = Control {
        sequence: 9,
        segment_bytes: 16 << 20,
        system_id: 7,
        start_no: 3,
        clean: true,
        redo: Lsn(1 << 20),
        checkpoint_end: Lsn((1 << 20) + 96),
        checkpoint_time: 1_700_000_000,
        state: (0..16).collect(),
    };
    let empty = Control { state: Vec::new(), clean: false, ..control.clone() };
    let full = Control { state: vec![255; 256], ..control.clone() };
    [control, empty, full].iter().map(|control| fuzzing::control_bytes(control).to_vec()).collect()
}

/// Rows of the catalog, each after its length.
pub fn catalog(input: &[u8]) {
    let mut input = Bytes(input);
    let mut rows = Vec::new();
    while !input.0.is_empty() {
        rows.push(input.short());
    }
    let _ = fuzzing::catalog(&rows);
    for row in rows {
        let _ = fuzzing::catalog(&[row]);
    }
}

pub fn catalog_seeds() -> Vec<Vec<u8>> {
    let rows: Vec<Vec<u8>> = fuzzing::catalog_rows()
        .into_iter()
        .map(|row| [&[row.len() as u8][..], &row].concat())
        .collect();
    let mut seeds = rows.clone();
    seeds.push(rows.concat());
    seeds
}
