//! What becomes of each damage: the table of docs/testing.md.

use super::matrix::Kind;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Expect {
    /// The start is refused, the check finds it.
    NoStart,
    /// Each read of the table is an error, other tables are whole, the check finds it.
    TableFails,
    /// Each read by the index is an error, all else is whole, the check finds it.
    IndexFails,
    /// All is there, and there is nothing to find.
    Whole,
    /// All is there, and the check finds it.
    WholeAndFound,
    /// It is not known that the pages are older: rows may be missing. The check finds what does not
    /// fit together.
    OnlyCheckFinds,
}

use Expect::*;

/// For each kind of file and each damage, in the order of `Damage::ALL`: after a clean stop, and
/// after a crash.
#[rustfmt::skip]
pub(super) const EXPECTED: [(Kind, [[Expect; 2]; 7]); 7] = [
    //                deleted          cut              zeroed           flipped
    //                older file       older page       exchanged
    (Kind::Heap,     [[TableFails; 2], [TableFails; 2], [TableFails; 2], [TableFails; 2],
                      [TableFails; 2], [OnlyCheckFinds; 2], [TableFails; 2]]),
    (Kind::Index,    [[IndexFails; 2], [IndexFails; 2], [IndexFails; 2], [IndexFails; 2],
                      [IndexFails; 2], [OnlyCheckFinds; 2], [IndexFails; 2]]),
    (Kind::Map,      [[Whole; 2], [Whole; 2], [Whole; 2], [Whole; 2],
                      [Whole; 2], [Whole; 2], [Whole; 2]]),
    (Kind::Catalog,  [[NoStart; 2], [NoStart; 2], [NoStart; 2], [NoStart; 2],
                      [NoStart; 2], [NoStart; 2], [NoStart; 2]]),
    (Kind::Statuses, [[NoStart; 2], [NoStart; 2], [NoStart; 2], [NoStart; 2],
                      [NoStart; 2], [NoStart; 2], [NoStart; 2]]),
    (Kind::Log,      [[NoStart; 2], [NoStart; 2], [NoStart; 2], [NoStart; 2],
                      [NoStart; 2], [NoStart; 2], [NoStart; 2]]),
    (Kind::Control,  [[NoStart; 2], [WholeAndFound; 2], [WholeAndFound; 2], [WholeAndFound; 2],
                      [NoStart; 2], [WholeAndFound; 2], [NoStart; 2]]),
];
