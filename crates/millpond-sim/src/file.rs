//! A file whose unsynced changes may or may not survive a crash.

use rand::Rng;
use rand::rngs::StdRng;

/// A change of a file that is not known to be durable.
#[derive(Clone)]
enum Change {
    Write {
        at: usize,
        bytes: Vec<u8>,
    },
    /// Extends the file with zeros.
    Extend(usize),
    Truncate(usize),
    Create,
    Remove,
}

/// The content of a file: its bytes, or `None` if it does not exist.
type Content = Option<Vec<u8>>;

/// A file: its durable content, what programs see, and the changes between the two.
#[derive(Clone, Default)]
pub(crate) struct SimFile {
    durable: Content,
    current: Content,
    pending: Vec<Change>,
}

impl SimFile {
    /// The bytes that programs see.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.current.as_deref()
    }

    pub fn create(&mut self) {
        self.change(Change::Create);
    }

    pub fn remove(&mut self) {
        self.change(Change::Remove);
    }

    pub fn extend(&mut self, length: usize) {
        self.change(Change::Extend(length));
    }

    pub fn truncate(&mut self, length: usize) {
        self.change(Change::Truncate(length));
    }

    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        self.change(Change::Write { at, bytes: bytes.to_vec() });
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.current, &change);
        self.pending.push(change);
    }

    pub fn sync(&mut self) {
        self.durable.clone_from(&self.current);
        self.pending.clear();
    }

    /// A sync that fails: some changes become durable, the others never will. No program can tell,
    /// because what programs see does not change.
    pub fn fail_sync(&mut self, rng: &mut StdRng, sector: usize) {
        self.durable = self.survivors(rng, sector);
        self.pending.clear();
    }

    /// The power fails: from now on programs see what survived.
    pub fn crash(&mut self, rng: &mut StdRng, sector: usize) {
        self.durable = self.survivors(rng, sector);
        self.current.clone_from(&self.durable);
        self.pending.clear();
    }

    /// Flips a bit, durably.
    pub fn flip(&mut self, byte: usize, bit: u8) {
        for content in [&mut self.durable, &mut self.current] {
            if let Some(byte) = content.as_mut().and_then(|bytes| bytes.get_mut(byte)) {
                *byte ^= 1 << bit;
            }
        }
    }

    /// The durable content with a random subset of the pending changes. Writes are torn at sectors.
    fn survivors(&self, rng: &mut StdRng, sector: usize) -> Content {
        let mut content = self.durable.clone();
        // All, none or some, so that each case is frequent.
        let chance = [0.0, 0.1, 0.5, 0.9, 1.0][rng.random_range(0..5)];
        for change in &self.pending {
            let Change::Write { at, bytes } = change else {
                if rng.random_bool(chance) {
                    apply(&mut content, change);
                }
                continue;
            };
            let mut done = 0;
            while done < bytes.len() {
                let part = (sector - (at + done) % sector).min(bytes.len() - done);
                if rng.random_bool(chance) {
                    let bytes = bytes[done..done + part].to_vec();
                    apply(&mut content, &Change::Write { at: at + done, bytes });
                }
                done += part;
            }
        }
        content
    }
}

fn apply(content: &mut Content, change: &Change) {
    match (change, content.as_mut()) {
        (Change::Create, None) => *content = Some(Vec::new()),
        (Change::Create, Some(_)) => {}
        (Change::Remove, _) => *content = None,
        (Change::Extend(length), Some(bytes)) if bytes.len() < *length => bytes.resize(*length, 0),
        (Change::Truncate(length), Some(bytes)) => bytes.truncate(*length),
        (Change::Write { at, bytes: new }, Some(bytes)) => {
            let end = at + new.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[*at..end].copy_from_slice(new);
        }
        // A change of a file that no longer exists.
        _ => {}
    }
}
