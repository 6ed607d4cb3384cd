//! The expected result of each damage: the table of docs/testing.md.

use super::matrix::Kind;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Expect {
    /// The start is refused. The check finds the damage.
    NoStart,
    /// Each read of the table fails; other tables are intact. The check finds the damage.
    TableFails,
    /// Each read through the index fails; all else is intact. The check finds the damage.
    IndexFails,
    /// All rows are there, and the check has no findings.
    Whole,
    /// All rows are there. The check finds the damage.
    WholeAndFound,
    /// The engine can't tell that the pages are older: rows may be missing. The check finds what is
    /// inconsistent.
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
