//! Other sessions act between two steps of an operation, at chosen moments and in one thread.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use millpond_buffer::{BufferSession, ExclusivePage, Lsn};

use super::*;
use crate::EngineResult;
use crate::wal::Record;

/// A session that lets others act each time before it reads or pins a page.
struct Disturbed<'a> {
    env: TestEnv,
    act: RefCell<Box<dyn FnMut() + 'a>>,
}

impl<'a> Disturbed<'a> {
    fn new(tree: &Tree, act: impl FnMut() + 'a) -> Self {
        Self { env: tree.env(), act: RefCell::new(Box::new(act)) }
    }
}

impl Env for Disturbed<'_> {
    fn buffers(&self) -> &BufferSession {
        self.env.buffers()
    }

    fn wait(&self) -> Wait {
        self.act.borrow_mut()();
        self.env.wait
    }

    fn log_and_apply(
        &self,
        pages: &mut [&mut ExclusivePage<'_>],
        record: Record<'_>,
    ) -> EngineResult<Lsn> {
        self.env.log_and_apply(pages, record)
    }
}

/// (btree rule 4)
#[test]
fn insert_descends_again_if_the_root_grew_before_its_latch() {
    let tree = Tree::new(100);
    let (env, other) = (tree.env(), tree.env());
    create(&env, &tree.rel).unwrap();
    let (steps, rows) = (Cell::new(0), Cell::new(0));
    let is_leaf = || {
        let root = BlockNumber(ROOT);
        let read = other
            .buffers()
            .read(&tree.rel, root, Wait::Allowed, |view| page::node::Node(view).is_leaf());
        read.unwrap()
    };
    let disturbed = Disturbed::new(&tree, || {
        steps.set(steps.get() + 1);
        // The first step reads the root, which is a leaf; the second latches it.
        while steps.get() == 2 && is_leaf() {
            let n = rows.replace(rows.get() + 1);
            insert(&other, &tree.rel, &int_key(n), tid(n), None).unwrap();
        }
    });
    insert(&disturbed, &tree.rel, &int_key(500_000), tid(500_000), None).unwrap();
    assert!(rows.get() > 500);
    assert_eq!(tree.check(&env).entries, u64::from(rows.get()) + 1);
    assert_eq!(found(&tree, &env, &int_key(500_000)), [tid(500_000)]);
}

/// (btree rule 8)
#[test]
fn unique_check_and_insertion_are_atomic() {
    let tree = Tree::new(100);
    let (env, other) = (tree.env(), tree.env());
    create(&env, &tree.rel).unwrap();
    let (dead, mine, theirs) = (tid(1), tid(2), tid(3));
    insert(&env, &tree.rel, &int_key(5), dead, None).unwrap();
    let (asked, came) = (Cell::new(false), Cell::new(false));
    let disturbed = Disturbed::new(&tree, || {
        let root = other.buffers().pin(&tree.rel, BlockNumber(ROOT), Wait::Allowed).unwrap();
        let Ok(page) = root.try_into_exclusive() else { return };
        drop(page);
        if asked.get() && !came.replace(true) {
            insert(&other, &tree.rel, &int_key(5), theirs, None).unwrap();
        }
    });
    let check = |_| {
        asked.set(true);
        Ok(UniqueVerdict::Free)
    };
    let outcome = insert(&disturbed, &tree.rel, &int_key(5), mine, Some(&check)).unwrap();
    assert_eq!(outcome, InsertOutcome::Done);
    assert!(asked.get());
    assert_eq!(found(&tree, &env, &int_key(5)), [dead, mine]);
}

/// (btree rule 5)
#[test]
fn a_link_leads_to_a_page_that_has_its_entries() {
    let tree = Rc::new(Tree::new(100));
    let mut env = tree.env();
    create(&env, &tree.rel).unwrap();
    let (known, looks) = (Rc::new(Cell::new(0u32)), Rc::new(Cell::new(0)));
    let look = {
        let (tree, known, looks) = (Rc::clone(&tree), Rc::clone(&known), Rc::clone(&looks));
        let reader = tree.env();
        move || {
            for n in 0..known.get() {
                assert_eq!(found(&tree, &reader, &int_key(n)), [tid(n)]);
            }
            looks.set(looks.get() + 1);
        }
    };
    env.between_pages = Some(Box::new(look));
    for n in 0..3000 {
        insert(&env, &tree.rel, &int_key(n), tid(n), None).unwrap();
        known.set(n + 1);
    }
    assert!(looks.get() >= 3, "{} looks", looks.get());
}
