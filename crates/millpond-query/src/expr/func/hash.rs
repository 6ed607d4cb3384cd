//! The hashes by which PostgreSQL's hash indexes and partitions find values, as functions.
//!
//! People use them as keys of advisory locks and to spread rows, and keep what they gave: so the
//! results are PostgreSQL's, bit by bit. The algorithm is Bob Jenkins's `lookup3`, from 2006, with
//! the start value that PostgreSQL gives it on little-endian machines.

use millpond_types::numeric::Parts;
use millpond_types::{Interval, NumericRef};

use super::catalog::{
    FLOAT4, FLOAT8, INT2, INT4, INT8, LSN_TYPE, NAME, NUMERIC, OID, Proc, TEXT, UUID_TYPE, proc,
};
use super::datetime::{INTERVAL, Stamp, TIME, TIMESTAMP, TIMETZ, Time, TimeTz};
use super::lsn::Lsn;
use super::value::{Arg, body};
use crate::Datum;

/// A function of 32 bits, and the one of 64 bits that takes a seed as well.
macro_rules! hash {
    ($oid:literal $name:literal, $extended_oid:literal $extended:literal: $param:expr,
     |$value:ident: $ty:ty, $seed:ident| $hash:expr) => {
        [
            proc(
                $oid,
                $name,
                &[$param],
                INT4,
                body!(|$value: $ty| {
                    let $seed = Seed::None;
                    low($hash)
                }),
            ),
            proc(
                $extended_oid,
                $extended,
                &[$param, INT8],
                INT8,
                body!(|$value: $ty, seed: i64| {
                    let $seed = Seed::Some(seed.cast_unsigned());
                    $hash.cast_signed()
                }),
            ),
        ]
    };
}

static OF_TYPES: [[Proc; 2]; 15] = [
    hash!(449 "hashint2", 441 "hashint2extended": INT2, |v: i16, seed| word(i32::from(v), seed)),
    hash!(450 "hashint4", 425 "hashint4extended": INT4, |v: i32, seed| word(v, seed)),
    hash!(949 "hashint8", 442 "hashint8extended": INT8, |v: i64, seed| long(v, seed)),
    hash!(453 "hashoid", 445 "hashoidextended": OID, |v: i64, seed| word(low(v.cast_unsigned()), seed)),
    hash!(451 "hashfloat4", 443 "hashfloat4extended": FLOAT4, |v: f32, seed| float(v.into(), seed)),
    hash!(452 "hashfloat8", 444 "hashfloat8extended": FLOAT8, |v: f64, seed| float(v, seed)),
    hash!(432 "hash_numeric", 780 "hash_numeric_extended": NUMERIC,
        |v: NumericRef<'_>, seed| numeric(v, seed)),
    hash!(400 "hashtext", 448 "hashtextextended": TEXT, |v: &str, seed| bytes(v.as_bytes(), seed)),
    hash!(455 "hashname", 447 "hashnameextended": NAME, |v: &str, seed| bytes(v.as_bytes(), seed)),
    hash!(2039 "timestamp_hash", 3411 "timestamp_hash_extended": TIMESTAMP,
        |v: Stamp, seed| long(v.0, seed)),
    hash!(1688 "time_hash", 3409 "time_hash_extended": TIME, |v: Time, seed| long(v.0, seed)),
    hash!(1696 "timetz_hash", 3410 "timetz_hash_extended": TIMETZ,
        |v: TimeTz, seed| long(v.0, seed) ^ word(v.1, seed)),
    hash!(1697 "interval_hash", 3418 "interval_hash_extended": INTERVAL,
        |v: Interval, seed| long(span(v), seed)),
    hash!(2963 "uuid_hash", 3412 "uuid_hash_extended": UUID_TYPE,
        |v: Bytes<'_>, seed| bytes(v.0, seed)),
    hash!(3252 "pg_lsn_hash", 3413 "pg_lsn_hash_extended": LSN_TYPE,
        |v: Lsn, seed| long(v.0.cast_signed(), seed)),
];

pub(super) static PROCS: &[Proc] = OF_TYPES.as_flattened();

/// A value's own bytes.
struct Bytes<'a>(&'a [u8]);

impl<'a> Arg<'a> for Bytes<'a> {
    fn of(datum: &Datum<'a>) -> Option<Self> {
        match datum {
            Datum::Other(_, bytes) => Some(Self(bytes)),
            _ => None,
        }
    }
}

/// What a hash of 64 bits begins with. One of 32 bits is the lower half of the 64 that there are
/// without a seed.
#[derive(Clone, Copy)]
pub(super) enum Seed {
    None,
    Some(u64),
}

impl Seed {
    /// The seed; 0 if there is none.
    pub(super) fn number(self) -> u64 {
        match self {
            Seed::None => 0,
            Seed::Some(seed) => seed,
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is asked for")]
pub(super) fn low(hash: u64) -> i32 {
    (hash as u32).cast_signed()
}

pub(super) fn word(value: i32, seed: Seed) -> u64 {
    let mut state = State::new(4, seed);
    state.0[0] = state.0[0].wrapping_add(value.cast_unsigned());
    state.last()
}

/// As the number of 32 bits that it may be.
pub(super) fn long(value: i64, seed: Seed) -> u64 {
    let high = low((value >> 32).cast_unsigned());
    word(low(value.cast_unsigned()) ^ if value >= 0 { high } else { !high }, seed)
}

/// Both zeros are equal, and all that are no numbers.
pub(super) fn float(value: f64, seed: Seed) -> u64 {
    if value == 0.0 {
        return seed.number();
    }
    let value = if value.is_nan() { f64::NAN.abs() } else { value };
    bytes(&value.to_le_bytes(), seed)
}

/// Equal numbers have the same digits, whatever they display.
pub(super) fn numeric(value: NumericRef<'_>, seed: Seed) -> u64 {
    let of_seed = seed.number();
    let Parts::Finite(decimal) = value.parts() else { return of_seed };
    if decimal.digits.is_empty() {
        return of_seed.wrapping_sub(1);
    }
    let digits: Vec<u8> = decimal.digits.iter().flat_map(|digit| digit.to_le_bytes()).collect();
    bytes(&digits, seed) ^ i64::from(decimal.weight).cast_unsigned()
}

#[expect(clippy::cast_possible_truncation, reason = "PostgreSQL, too, takes the lower half")]
pub(super) fn span(interval: Interval) -> i64 {
    interval.span() as i64
}

pub(super) fn bytes(key: &[u8], seed: Seed) -> u64 {
    let mut state = State::new(key.len(), seed);
    let (blocks, rest) = key.as_chunks::<12>();
    for block in blocks {
        state.add(block);
        state.mix();
    }
    // The lowest byte of the third word stands for the length.
    let mut block = [0; 12];
    for (place, byte) in rest.iter().enumerate() {
        block[place + usize::from(place >= 8)] = *byte;
    }
    state.add(&block);
    state.last()
}

struct State([u32; 3]);

impl State {
    /// The state that the hash of a key of this length begins with.
    #[expect(clippy::cast_possible_truncation, reason = "values have at most 1 GB")]
    fn new(length: usize, seed: Seed) -> Self {
        let start = 0x9e37_79b9_u32.wrapping_add(length as u32).wrapping_add(3_923_095);
        let mut state = Self([start; 3]);
        if let Seed::Some(seed @ 1..) = seed {
            state.0[0] = start.wrapping_add((seed >> 32) as u32);
            state.0[1] = start.wrapping_add(seed as u32);
            state.mix();
        }
        state
    }

    fn add(&mut self, block: &[u8; 12]) {
        for (word, bytes) in self.0.iter_mut().zip(block.as_chunks::<4>().0) {
            *word = word.wrapping_add(u32::from_le_bytes(*bytes));
        }
    }

    fn mix(&mut self) {
        let [a, b, c] = &mut self.0;
        let round = |x: &mut u32, y: &mut u32, z: u32, shift| {
            *x = x.wrapping_sub(*y) ^ y.rotate_left(shift);
            *y = y.wrapping_add(z);
        };
        round(a, c, *b, 4);
        round(b, a, *c, 6);
        round(c, b, *a, 8);
        round(a, c, *b, 16);
        round(b, a, *c, 19);
        round(c, b, *a, 4);
    }

    /// The hash: its upper half is only for those with a seed.
    fn last(self) -> u64 {
        let [mut a, mut b, mut c] = self.0;
        let round = |x: &mut u32, y: u32, shift| *x = (*x ^ y).wrapping_sub(y.rotate_left(shift));
        round(&mut c, b, 14);
        round(&mut a, c, 11);
        round(&mut b, a, 25);
        round(&mut c, b, 16);
        round(&mut a, c, 4);
        round(&mut b, a, 14);
        round(&mut c, b, 24);
        u64::from(b) << 32 | u64::from(c)
    }
}
