//! The threads of a search: see [`search`](super::search).

/// Places of a program that are to go on at one character, each with the place in the text where
/// its match began. Earlier beginnings come first.
#[derive(Debug)]
pub(super) struct Threads {
    pub(super) list: Vec<(usize, usize)>,
    /// The round in which each step was last added.
    pub(super) seen: Vec<u32>,
    pub(super) round: u32,
}

impl Threads {
    /// An empty list, for a program with this number of steps.
    pub(super) fn new(steps: usize) -> Self {
        Threads { list: Vec::new(), seen: vec![0; steps], round: 1 }
    }

    /// Empties the list, and forgets which steps were added.
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.round = self.round.checked_add(1).unwrap_or_else(|| {
            self.seen.fill(0);
            1
        });
    }
}
