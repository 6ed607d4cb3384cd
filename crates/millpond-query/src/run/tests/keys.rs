//! Tables of keys.

use super::*;
use crate::run::key_table::{Entered, KeyTable};

#[test]
fn keys_are_numbered_as_they_come_and_found_again() {
    // No key, one, those of a small table, and those of one that has grown a few times.
    for count in [0usize, 1, 12, 13, 5000] {
        with_work(true, |work| {
            let mut table = KeyTable::default();
            let key = |i: usize| i.to_string().into_bytes();
            for _ in 0..2 {
                for i in 0..count {
                    assert_eq!(table.find(&key(i)), None);
                    let entered = table.enter(&key(i), work)?;
                    assert!(entered.is_new() && entered.grown > key(i).len());
                    assert_eq!((entered.number, table.len()), (i, i + 1));
                }
                for i in 0..count {
                    assert_eq!(table.enter(&key(i), work)?, Entered { number: i, grown: 0 });
                    assert_eq!(table.find(&key(i)), Some(i));
                    assert_eq!(table.key(i), Some(key(i).as_slice()));
                }
                assert_eq!((table.find(b""), table.key(count)), (None, None));
                assert_eq!(table.is_empty(), count == 0);
                table.clear();
                assert!(table.is_empty());
            }
            Ok(())
        })
        .unwrap();
    }
}
