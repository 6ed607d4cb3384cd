//! Inner pages that get separators of every shape: they take every separator (btree rule 16).

use super::*;

/// A level of inner pages without levels above and below.
struct Level {
    pages: Vec<Page>,
    model: BTreeSet<Entry>,
    /// Pages that were cut without the entry.
    made_room: usize,
}

impl Level {
    fn new(high: Option<Entry>) -> Self {
        let right = if high.is_some() { 9 } else { 0 };
        let lowest = (Vec::new(), 0);
        let frame = Frame { flags: 0, level: 1, right, cycle: 0, high };
        let page = items_of(std::slice::from_ref(&lowest), true).build(&frame, 0..1).unwrap();
        Self { pages: vec![page], model: BTreeSet::from([lowest]), made_room: 0 }
    }

    fn home(&self, target: Target<'_>) -> usize {
        self.pages.iter().position(|page| !Node(&**page).is_beyond(target)).unwrap()
    }

    fn insert(&mut self, key: &[u8], tid: u64) {
        if !self.model.insert((key.to_vec(), tid)) {
            return;
        }
        let mut data = Vec::new();
        loop {
            let home = self.home(Target { key, tid });
            let page = self.pages[home].clone();
            let index = Node(&*page).child_slot(Target { key, tid }) + 1;
            let item = Item { key, tid, child: 5 };
            if !matches!(plan_insert(&page, index, item), Insertion::Full) {
                record::insert_data(&mut data, index, &item);
                self.pages[home] = redo(&page, record::INSERT, 0, &data);
                return;
            }
            let (frame, mut items) = (Frame::of(&*page), Items::of(&*page));
            items.insert(index, item);
            let with = split::cut(&items, &frame, index, 77);
            items.retain(|at| at != index);
            let (cut, new) = match with {
                Some(cut) => (cut, Some((index, item))),
                None => (split::cut_near(&items, &frame, index, 77).unwrap(), None),
            };
            let separator = (&cut.key[..], cut.tid);
            SplitData { new, at: cut.at, right: 77, cycle: 0, separator }.encode(&mut data);
            let left = redo(&page, record::SPLIT, 1, &data);
            assert!(left[12..] == cut.left[12..]);
            self.pages[home] = redo(&left, record::INSERT, 1, &[]);
            self.pages.insert(home + 1, cut.right);
            if new.is_some() {
                return;
            }
            self.made_room += 1;
        }
    }

    /// Takes away every `step`th separator but the first of each page.
    fn thin_out(&mut self, step: usize) {
        for page in &mut self.pages {
            let gone: Vec<u16> =
                (1..Node(&**page).count()).step_by(step).map(|at| at as u16).collect();
            for (at, entry) in entries_of(page).into_iter().enumerate() {
                if gone.contains(&(at as u16)) {
                    self.model.remove(&entry);
                }
            }
            let mut data = Vec::new();
            record::remove_data(&mut data, &gone);
            *page = redo(page, record::REMOVE, 0, &data);
        }
    }

    fn check(&self) {
        for page in &self.pages {
            assert_eq!(page_problems(page, 1), [] as [String; 0]);
        }
        let found: Vec<Entry> = self.pages.iter().flat_map(|page| entries_of(page)).collect();
        assert!(found.iter().eq(self.model.iter()), "{} of {}", found.len(), self.model.len());
    }
}

/// Separators with a number of bytes in common and any length after them. Some lack part of these
/// bytes.
fn separators() -> impl Strategy<Value = Vec<Entry>> {
    let tid = || prop_oneof![6 => Just(0u64), 1 => 1u64..1 << 20];
    (0usize..2650, 0usize..4).prop_flat_map(move |(shared, shape)| {
        let with = move |n: u32, more: usize| {
            let more = [0, 4, 40, 3000][shape].min(more).min(MAX_KEY_BYTES - shared - 4);
            [&vec![9; shared][..], &n.to_be_bytes(), &vec![1; more]].concat()
        };
        let outlier = move |kept: usize, byte: u8, more: usize| {
            let kept = kept.min(shared);
            [&vec![9; kept][..], &[byte], &vec![2; more.min(MAX_KEY_BYTES - kept - 1)]].concat()
        };
        let key = prop_oneof![
            60 => (any::<u32>(), 0usize..3000).prop_map(move |(n, more)| with(n >> 12, more)),
            1 => (0usize..3000, any::<u8>(), 0usize..3000).prop_map(move |(kept, byte, more)| outlier(kept, byte, more)),
            1 => (0usize..3000, any::<u8>()).prop_map(move |(kept, byte)| outlier(kept, byte, 3000)),
        ];
        proptest::collection::vec((key, tid()), 1..900)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn inner_pages_take_every_separator(
        separators in separators(),
        step in 1usize..20,
        high in prop_oneof![Just(None), (1usize..=MAX_KEY_BYTES).prop_map(|len| Some((vec![255; len], 3)))],
    ) {
        let mut level = Level::new(high.clone());
        let below = |entry: &&Entry| high.as_ref().is_none_or(|high| *entry < high);
        let (first, second) = separators.split_at(separators.len() * 2 / 3);
        for (key, tid) in first.iter().filter(below) {
            level.insert(key, *tid);
        }
        level.check();
        level.thin_out(step);
        for (key, tid) in second.iter().filter(below) {
            level.insert(key, *tid);
        }
        level.check();
    }
}

#[test]
fn a_full_inner_page_is_cut_without_the_entry() {
    let mut made_room = 0;
    for shared in (0..2600).step_by(97) {
        for outlier in [&[8; MAX_KEY_BYTES][..], &[10; MAX_KEY_BYTES], &[10]] {
            let mut level = Level::new(None);
            let mut n = 0u32;
            // Fills the page to its last slot.
            while level.pages.len() == 1 {
                let page = level.pages[0].clone();
                level.insert(&[&vec![9; shared][..], &n.to_be_bytes()].concat(), 0);
                n += 1;
                if level.pages.len() > 1 {
                    level.pages = vec![page];
                    level.model.pop_last();
                    break;
                }
            }
            level.insert(outlier, 0);
            level.check();
            assert!(level.made_room <= 2);
            made_room += level.made_room;
        }
    }
    assert!(made_room > 20, "{made_room}");
}
