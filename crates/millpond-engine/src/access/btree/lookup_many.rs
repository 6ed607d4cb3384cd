//! Lookups of many keys together.
//!
//! The keys are sorted and go down the tree level by level. A page that several of them pass is
//! read once. The pages of the next level are then known before any of them is needed. So a
//! [`ReadStream`] reads those that are not in memory at the same time. A single lookup would wait
//! for one page after the other.
//!
//! Each key moves as in a single lookup (btree rules 2 and 3); groups of keys are only neighbours
//! that go to one page.

use std::ops::Range;

use millpond_buffer::{BlockNumber, PageRead, ReadStream, RelHandle};

use super::ROOT;
use super::descend::{Side, Step, Steps, damaged, step};
use super::env::Env;
use super::lookup::{Tids, collect};
use super::page::item::Target;
use super::page::node::Node;
use crate::EngineResult;
use crate::access::Tid;

/// Keys in order.
pub trait SortedKeys {
    /// How many there are.
    fn count(&self) -> usize;
    /// One of them. Numbers below [`SortedKeys::count`] are valid.
    fn key(&self, number: usize) -> &[u8];
}

/// Neighbouring keys that go to one page.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    block: u32,
    keys: Range<usize>,
}

/// Memory of [`ManyLookups::lookup`], to be used again.
#[derive(Debug, Default)]
pub struct ManyLookups {
    /// Where the keys go next.
    groups: Vec<Group>,
    /// Where they go after that.
    next: Vec<Group>,
    tids: Tids,
}

/// What is read next to a page.
enum Outcome {
    Done,
    Gone,
    Lost,
}

impl ManyLookups {
    /// Appends the tids of all entries with the keys: the number of the key, and the tid. Those of
    /// one key are in order; the keys are in no order. If the pages are in memory, it writes
    /// nothing shared.
    pub fn lookup<E: Env + ?Sized>(
        &mut self,
        env: &E,
        rel: &RelHandle,
        keys: &impl SortedKeys,
        stream: &mut ReadStream,
        found: &mut Vec<(usize, Tid)>,
    ) -> EngineResult<()> {
        self.groups.clear();
        if keys.count() > 0 {
            self.groups.push(Group { block: ROOT, keys: 0..keys.count() });
        }
        // Each round takes every key one step on.
        let mut steps = Steps::new(rel);
        while let Some(first) = self.groups.first() {
            steps.take(rel, first.block)?;
            self.round(env, rel, keys, stream, found)?;
            std::mem::swap(&mut self.groups, &mut self.next);
        }
        Ok(())
    }

    /// Reads the pages of all groups.
    fn round<E: Env + ?Sized>(
        &mut self,
        env: &E,
        rel: &RelHandle,
        keys: &impl SortedKeys,
        stream: &mut ReadStream,
        found: &mut Vec<(usize, Tid)>,
    ) -> EngineResult<()> {
        let Self { groups, next, tids } = self;
        next.clear();
        stream.reset();
        // A page alone has nothing behind it to be read ahead.
        let is_alone = groups.len() == 1;
        let mut blocks = groups.iter().map(|group| BlockNumber(group.block));
        for Group { block, keys: part } in groups.iter() {
            env.check_interrupts()?;
            if !is_alone {
                stream.peek(env.buffers(), rel, env.wait(), None, &mut || blocks.next());
            }
            let kept = (next.len(), found.len());
            let outcome = env.buffers().read(rel, BlockNumber(*block), env.wait(), |view| {
                // A new run removes the results of a run on torn bytes.
                next.truncate(kept.0);
                found.truncate(kept.1);
                pass(Node(view), keys, part.clone(), tids, next, found)
            })?;
            stream.advance();
            match outcome {
                Outcome::Done => {}
                Outcome::Gone => {
                    // What earlier pages gave is found again.
                    found.retain(|(key, _)| !part.contains(key));
                    next.push(Group { block: ROOT, keys: part.clone() });
                }
                Outcome::Lost => return Err(damaged(rel, *block, "not a page of the tree")),
            }
        }
        Ok(())
    }
}

/// Takes some keys one step on from a page.
fn pass<P: PageRead + ?Sized>(
    node: Node<'_, P>,
    keys: &impl SortedKeys,
    part: Range<usize>,
    tids: &mut Tids,
    next: &mut Vec<Group>,
    found: &mut Vec<(usize, Tid)>,
) -> Outcome {
    // Groups of other pages may lead to the same one, but are not this page's.
    let first = next.len();
    for number in part {
        let key = keys.key(number);
        tids.clear();
        let step = match step(node, Target::first(key), Side::At) {
            Step::Arrived(()) => collect(node, key, tids),
            other => other,
        };
        found.extend(tids.iter().map(|tid| (number, *tid)));
        match step {
            Step::Arrived(()) => {}
            Step::Down(block) | Step::Right(block) => match next.get_mut(first..) {
                Some([.., last]) if last.block == block && last.keys.end == number => {
                    last.keys.end = number + 1;
                }
                _ => next.push(Group { block, keys: number..number + 1 }),
            },
            Step::Gone => return Outcome::Gone,
            Step::Lost => return Outcome::Lost,
        }
    }
    Outcome::Done
}
