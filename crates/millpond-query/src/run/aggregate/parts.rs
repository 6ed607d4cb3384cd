//! Aggregation in parts: threads aggregate the rows that they read, and the session puts their
//! groups together.
//!
//! A thread gives its groups at the end of each chunk of the table, or when they take much memory.
//! The session takes them in the order of the table. So groups come in the order of their first
//! rows, and all is as if one thread had taken in one row after the other.
//!
//! ```text
//! a group: its keys, then three values for each call that has a state of its own
//! ```

use std::collections::HashMap;

use foldhash::fast::RandomState;
use millpond_sync::mutant;
use smallvec::SmallVec;

use super::accumulator::Accumulator;
use crate::analyze::tree::AggregateFunction;
use crate::error::Result;
use crate::expr::{Env, Expr, Val};
use crate::memory::{Datums, row_bytes};
use crate::plan::query::node::Aggregate;
use crate::run::datum_key;
use crate::{Datum, Value};

/// About how much memory a thread's groups may take. That is little beside the pieces in which rows
/// wait, so it is not counted.
const MOST_BYTES: usize = 128 << 10;
/// About what a group takes beside its key and its states.
const BYTES_OF_GROUP: usize = 64;

/// What all threads do with each row.
pub(in crate::run) struct PartialAggregation {
    keys: Vec<Expr>,
    calls: Vec<Call>,
}

struct Call {
    function: AggregateFunction,
    arg: Option<Expr>,
    filter: Option<Expr>,
}

impl PartialAggregation {
    /// An aggregation, with expressions for threads.
    pub(super) fn of(
        aggregate: &Aggregate,
        settled: &dyn Fn(&Expr) -> Result<Expr>,
    ) -> Result<Self> {
        let optional = |e: Option<&Expr>| e.map(settled).transpose();
        let of_call = |place: usize| {
            let call = &aggregate.calls[place];
            let (arg, filter) = (optional(call.args.first())?, optional(call.filter.as_ref())?);
            Ok(Call { function: call.function, arg, filter })
        };
        let own = (0..aggregate.calls.len()).filter(|place| aggregate.state_of(*place) == *place);
        Ok(Self {
            keys: aggregate.keys.iter().map(settled).collect::<Result<_>>()?,
            calls: own.map(of_call).collect::<Result<_>>()?,
        })
    }

    fn states(&self) -> impl Iterator<Item = Accumulator> {
        self.calls.iter().map(|call| Accumulator::new(call.function))
    }

    /// Takes a row into states. Says about how many bytes they have grown by.
    fn add(&self, states: &mut [Accumulator], env: &Env<'_>) -> Result<usize> {
        let mut grown = 0;
        for (call, state) in self.calls.iter().zip(states) {
            if let Some(filter) = &call.filter
                && !mutant!("aggregate-part-without-filter")
                && !filter.holds(env)?
            {
                continue;
            }
            grown += match &call.arg {
                Some(arg) => state.add_expr(call.function, arg, env)?,
                None => state.add(call.function, Datum::Null, Datum::Null)?,
            };
        }
        Ok(grown)
    }
}

/// The groups of a chunk, on one thread.
#[derive(Default)]
pub(in crate::run) struct PartGroups {
    numbers: HashMap<Box<[u8]>, usize, RandomState>,
    /// Keys of the groups as rows, one behind the other, and where they end.
    keys: Vec<u8>,
    ends: Vec<usize>,
    /// Those of a group, behind those of the group before.
    states: Vec<Accumulator>,
    bytes: usize,
    /// The group of the row before, and its key.
    last: usize,
    key: Vec<u8>,
    last_key: Vec<u8>,
}

impl PartGroups {
    /// Forgets the groups.
    pub(in crate::run) fn clear(&mut self) {
        self.numbers.clear();
        self.keys.clear();
        self.ends.clear();
        self.states.clear();
        self.bytes = 0;
    }

    /// Takes the row of `env` in. True if the groups are to be given now.
    pub(in crate::run) fn add(
        &mut self,
        parts: &PartialAggregation,
        env: &Env<'_>,
    ) -> Result<bool> {
        let group = self.group(parts, env)?;
        let count = parts.calls.len();
        let states = self.states.get_mut(group * count..(group + 1) * count).unwrap_or_default();
        self.bytes += parts.add(states, env)?;
        Ok(self.bytes > MOST_BYTES)
    }

    fn group(&mut self, parts: &PartialAggregation, env: &Env<'_>) -> Result<usize> {
        self.key.clear();
        for key in &parts.keys {
            match key.int(env) {
                Some(int) => datum_key::push_int(int.value, &mut self.key),
                None => datum_key::push(&key.operand(env, &mut Val::null())?, &mut self.key),
            }
        }
        // To compare memory of no bytes is slow where there is no memory: a processor's masked load
        // from an address that is not mapped takes a hundred cycles.
        let is_last = parts.keys.is_empty() || self.key == self.last_key;
        if is_last && (!self.ends.is_empty() || mutant!("aggregate-part-group-of-chunk-before")) {
            return Ok(self.last);
        }
        let group = match self.numbers.get(&*self.key) {
            Some(group) => *group,
            None => {
                let keys = parts.keys.iter().map(|key| key.eval(env));
                let keys = keys.collect::<Result<SmallVec<[Val<'_>; 4]>>>()?;
                let datums: Datums<'_> = keys.iter().map(Val::datum).collect();
                row_bytes::push(&datums, &mut self.keys)?;
                self.ends.push(self.keys.len());
                self.states.extend(parts.states());
                self.numbers.insert(self.key.as_slice().into(), self.ends.len() - 1);
                self.bytes += self.key.len() + BYTES_OF_GROUP;
                self.bytes += parts.calls.len() * size_of::<Accumulator>();
                self.ends.len() - 1
            }
        };
        self.last = group;
        std::mem::swap(&mut self.key, &mut self.last_key);
        Ok(group)
    }

    /// Gives the groups, and forgets them. `row` takes the bytes of each.
    pub(in crate::run) fn give(
        &mut self,
        parts: &PartialAggregation,
        mut row: impl FnMut(&[u8], &[u8]),
    ) -> Result<()> {
        let count = parts.calls.len();
        let (mut start, mut bytes) = (0, Vec::new());
        for (group, end) in self.ends.iter().enumerate() {
            bytes.clear();
            let states = self.states.get(group * count..(group + 1) * count).unwrap_or_default();
            for state in states {
                let part = state.part()?;
                row_bytes::push(&part.each_ref().map(Value::as_datum), &mut bytes)?;
            }
            row(self.keys.get(start..*end).unwrap_or_default(), &bytes);
            start = *end;
        }
        if !mutant!("aggregate-part-is-given-twice") {
            self.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::DataType;
    use crate::expr::tests::with_params;
    use crate::expr::{Compare, Row};
    use crate::types::FormatOptions;

    /// `sum(value) filter (where value > 0)` and `count(*)`, in groups by a text.
    fn aggregation() -> PartialAggregation {
        let value = || Expr::Column(1);
        let is_positive =
            Expr::Compare(Compare::Gt, Box::new((value(), Expr::Const(Value::Int4(0)))));
        let sum = Call {
            function: AggregateFunction::Sum,
            arg: Some(value()),
            filter: Some(is_positive),
        };
        let count = Call { function: AggregateFunction::CountRows, arg: None, filter: None };
        PartialAggregation { keys: vec![Expr::Column(0)], calls: vec![sum, count] }
    }

    type Totals = Vec<(String, Option<i64>, i64)>;

    /// Groups in the order of their first rows, as threads and the session find them. Threads take
    /// turns with chunks of this size.
    fn in_parts(rows: &[(String, i32)], chunk: usize, threads: usize) -> Totals {
        in_parts_and_early(rows, chunk, threads).0
    }

    /// The same, and how often groups were given within a chunk.
    fn in_parts_and_early(rows: &[(String, i32)], chunk: usize, threads: usize) -> (Totals, usize) {
        let mut early = 0;
        let parts = aggregation();
        let mut own: Vec<PartGroups> = (0..threads).map(|_| PartGroups::default()).collect();
        let mut groups: Vec<(String, Vec<Accumulator>)> = Vec::new();
        let mut take = |key: &[u8], states: &[u8]| {
            let (key, states) = (row_bytes::read(key).unwrap(), row_bytes::read(states).unwrap());
            let [Datum::Text(name)] = key.as_slice() else { panic!("{key:?}") };
            let place = groups.iter().position(|(group, _)| group == name);
            let place = place.unwrap_or_else(|| {
                groups.push(((*name).to_owned(), parts.states().collect()));
                groups.len() - 1
            });
            let calls = parts.calls.iter().zip(&mut groups[place].1);
            for ((call, state), part) in calls.zip(states.chunks_exact(3)) {
                state.add_part(call.function, [part[0], part[1], part[2]]).unwrap();
            }
        };
        for (number, rows) in rows.chunks(chunk).enumerate() {
            let own = &mut own[number % threads];
            for (name, value) in rows {
                let row = [Datum::Text(name), Datum::Int4(*value)];
                let is_enough = with_params(&[], |env| {
                    own.add(&parts, &env.with_row(Row::Datums(&row))).unwrap()
                });
                if is_enough {
                    early += 1;
                    own.give(&parts, &mut take).unwrap();
                }
            }
            own.give(&parts, &mut take).unwrap();
        }
        let options = FormatOptions::default();
        let total = |(name, states): (String, Vec<Accumulator>)| {
            let finish = |place: usize| {
                states[place].finish(parts.calls[place].function, DataType::Int8, &options)
            };
            let sum = match finish(0).unwrap() {
                Value::Null => None,
                Value::Int8(sum) => Some(sum),
                other => panic!("{other:?}"),
            };
            let Value::Int8(count) = finish(1).unwrap() else { panic!("no count") };
            (name, sum, count)
        };
        (groups.into_iter().map(total).collect(), early)
    }

    fn at_once(rows: &[(String, i32)]) -> Totals {
        let (mut places, mut totals) = (BTreeMap::new(), Totals::new());
        for (name, value) in rows {
            let place = *places.entry(name).or_insert(totals.len());
            if place == totals.len() {
                totals.push((name.clone(), None, 0));
            }
            let (_, sum, count) = &mut totals[place];
            *count += 1;
            if *value > 0 {
                *sum = Some(sum.unwrap_or_default() + i64::from(*value));
            }
        }
        totals
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn groups_come_as_from_one_thread(
            rows in prop::collection::vec(("[ab]{0,3}", -3..40i32), 0..300),
            chunk in 1..60usize,
            threads in 1..4usize,
        ) {
            prop_assert_eq!(in_parts(&rows, chunk, threads), at_once(&rows));
        }
    }

    /// Groups are given within a chunk when they take much memory.
    #[test]
    fn large_groups_are_given_early() {
        let rows: Vec<_> = (0..600).map(|row| (format!("{:0>1000}", row % 400), row)).collect();
        let (totals, early) = in_parts_and_early(&rows, 600, 1);
        assert_eq!(totals, at_once(&rows));
        assert!((2..=5).contains(&early), "{early}");
    }
}
