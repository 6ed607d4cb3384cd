//! Slots, and columns as numbers.

/// Bits of a column's number that say its place in its slot.
const PLACE_BITS: u32 = 16;

/// The number of a relation within a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u16);

impl Slot {
    /// Its place among the slots of a statement.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The number of its first column. Those of the others follow.
    pub(crate) fn first_column(self) -> usize {
        self.index() << PLACE_BITS
    }
}

/// The number of a column.
pub fn column(slot: Slot, place: usize) -> usize {
    debug_assert!(place < 1 << PLACE_BITS);
    slot.first_column() | place
}

/// The slot and the place of a column.
pub fn slot_of(column: usize) -> (Slot, usize) {
    let slot = (column >> PLACE_BITS) as u16;
    (Slot(slot), column & ((1 << PLACE_BITS) - 1))
}

/// The columns that each table has, behind its own.
pub(crate) const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "cmax", "xmax", "cmin", "xmin", "ctid"];

/// Whether a column of that name is one of them.
pub fn is_system_column(name: &str) -> bool {
    SYSTEM_COLUMNS.contains(&name)
}

/// One of these columns. Its place in a slot is far behind all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SystemColumn {
    /// Where the row is: a number, of which `tid_of_number` makes a `tid`.
    Ctid,
    /// The number of the row's table.
    Tableoid,
}

impl SystemColumn {
    const FIRST_PLACE: usize = (1 << PLACE_BITS) - 2;

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ctid => "ctid",
            Self::Tableoid => "tableoid",
        }
    }

    /// The number of such a column of a slot.
    pub(crate) fn of_slot(self, slot: Slot) -> usize {
        column(slot, Self::FIRST_PLACE + self as usize)
    }

    /// What a column of that place is, unless it is one of the table's own.
    pub(crate) fn at_place(place: usize) -> Option<Self> {
        match place.checked_sub(Self::FIRST_PLACE)? {
            0 => Some(Self::Ctid),
            _ => Some(Self::Tableoid),
        }
    }
}
