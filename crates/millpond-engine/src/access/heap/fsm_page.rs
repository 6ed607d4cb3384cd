//! A page of the free space map: one byte per heap block, and the maximum of each group of blocks.
//!
//! docs/file-format.md ("Free space map") gives the bytes.
//!
//! Page `n` of the fork covers heap blocks `n * 8064` to `n * 8064 + 8063`. The map is a hint (heap
//! rule 9). A group maximum may be too high until the group next changes, and any byte may be
//! wrong. A page of another kind counts as full everywhere and is started anew when written.

use millpond_buffer::{BlockNumber, PageRead};

use crate::page::{KIND, PageKind, PageMut, kind};

const GROUPS: usize = 64;
const GROUP_BLOCKS: usize = 126;
const MAXIMA: usize = 32;
const LEAVES: usize = MAXIMA + GROUPS;
/// Bytes of free space per unit of a leaf.
pub const UNIT: usize = 32;
/// Heap blocks that a page covers.
pub const BLOCKS_PER_PAGE: u32 = (GROUPS * GROUP_BLOCKS) as u32;

/// The map's page for a heap block, and the block's place on it.
pub fn place_of(block: BlockNumber) -> (BlockNumber, usize) {
    (BlockNumber(block.0 / BLOCKS_PER_PAGE), (block.0 % BLOCKS_PER_PAGE) as usize)
}

/// The leaf value for a page with `usable` bytes of usable space.
pub fn category(usable: usize) -> u8 {
    (usable / UNIT).min(255) as u8
}

/// The smallest leaf value that promises `bytes`.
pub fn category_needed(bytes: usize) -> u8 {
    bytes.div_ceil(UNIT).clamp(1, 255) as u8
}

/// The value that the map has for a place.
pub fn leaf<P: PageRead + ?Sized>(page: &P, place: usize) -> u8 {
    if kind(page) == PageKind::Fsm as u16 { page.u8(LEAVES + place) } else { 0 }
}

/// A place with at least `wanted`. The search begins at place `from` and wraps around.
pub fn find<P: PageRead + ?Sized>(page: &P, wanted: u8, from: usize) -> Option<usize> {
    if kind(page) != PageKind::Fsm as u16 {
        return None;
    }
    let (first_group, first_leaf) = (from / GROUP_BLOCKS % GROUPS, from % GROUP_BLOCKS);
    // The first group is searched twice: first from `from` on, and at last from its beginning.
    (0..=GROUPS).find_map(|step| {
        let group = (first_group + step) % GROUPS;
        if page.u8(MAXIMA + group) < wanted {
            return None;
        }
        let start = if step == 0 { first_leaf } else { 0 };
        let leaves = LEAVES + group * GROUP_BLOCKS;
        (start..GROUP_BLOCKS)
            .find(|leaf| page.u8(leaves + leaf) >= wanted)
            .map(|leaf| group * GROUP_BLOCKS + leaf)
    })
}

/// Sets the value of a place. A page that is not one of the map is started anew.
pub fn set<P: PageMut + ?Sized>(page: &mut P, place: usize, value: u8) {
    if kind(page) != PageKind::Fsm as u16 {
        page.write(KIND, &[0; LEAVES - KIND]);
        page.write(LEAVES, &[0; GROUPS * GROUP_BLOCKS]);
        page.put_u16(KIND, PageKind::Fsm as u16);
    }
    let place = place % BLOCKS_PER_PAGE as usize;
    page.write(LEAVES + place, &[value]);
    let group = place / GROUP_BLOCKS;
    let leaves = LEAVES + group * GROUP_BLOCKS;
    let maximum = (0..GROUP_BLOCKS).map(|leaf| page.u8(leaves + leaf)).max().unwrap_or(0);
    if page.u8(MAXIMA + group) != maximum {
        page.write(MAXIMA + group, &[maximum]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_buffer::PAGE_SIZE;
    use proptest::prelude::*;

    const _: () = assert!(LEAVES + GROUPS * GROUP_BLOCKS <= PAGE_SIZE);

    proptest! {
        #[test]
        fn map_finds_exactly_what_was_recorded(
            notes in prop::collection::vec((0usize..8064, any::<u8>()), 0..60),
            wanted in 1u8.., from in 0usize..8064,
        ) {
            let mut page = Box::new([0; PAGE_SIZE]);
            let mut model = vec![0; 8064];
            for &(place, value) in &notes {
                set(&mut *page, place, value);
                model[place] = value;
                prop_assert_eq!(leaf(&*page, place), value);
            }
            let found = find(&*page, wanted, from);
            prop_assert_eq!(found.is_some(), model.iter().any(|&value| value >= wanted));
            if let Some(place) = found {
                prop_assert!(model[place] >= wanted);
            }
        }

        #[test]
        fn garbage_is_harmless(bytes in prop::collection::vec(any::<u8>(), 64), place: usize, from: usize) {
            let mut page = Box::new([0; PAGE_SIZE]);
            for (i, byte) in page.iter_mut().enumerate() {
                *byte = bytes[i % 64];
            }
            page.put_u16(KIND, PageKind::Fsm as u16);
            let _ = find(&*page, 255, from);
            set(&mut *page, place, 3);
            page.put_u16(KIND, 77);
            prop_assert_eq!(find(&*page, 1, from), None);
            set(&mut *page, 5, 3);
            prop_assert_eq!(find(&*page, 1, from), Some(5));
        }
    }

    #[test]
    fn recorded_space_never_exceeds_free_space() {
        for bytes in 0..PAGE_SIZE {
            assert!(category(bytes) as usize * UNIT <= bytes);
            if bytes > 0 && bytes <= 255 * UNIT {
                assert!(category_needed(bytes) as usize * UNIT >= bytes);
            }
        }
    }
}
