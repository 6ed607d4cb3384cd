//! The steps of a random history.

use proptest::prelude::*;

#[derive(Clone, Debug)]
pub(super) enum Action {
    Insert { len: usize },
    InsertMany { count: usize, len: usize },
    Update { key: usize, len: usize, moves_key: bool },
    Delete { key: usize },
    Lock { key: usize },
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A transaction: its actions, one command each, and whether it commits.
    Run(Vec<Action>, bool),
    Hold,
    LetGo(usize),
    Vacuum,
    Truncate,
}

pub(super) fn len() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 0usize..300, 1 => 1000usize..8000]
}

pub(super) fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => len().prop_map(|len| Action::Insert { len }),
        1 => (1usize..200, 0usize..200).prop_map(|(count, len)| Action::InsertMany { count, len }),
        8 => (any::<usize>(), len(), any::<bool>())
            .prop_map(|(key, len, moves_key)| Action::Update { key, len, moves_key }),
        2 => any::<usize>().prop_map(|key| Action::Delete { key }),
        1 => any::<usize>().prop_map(|key| Action::Lock { key }),
    ]
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (prop::collection::vec(action(), 1..6), prop::bool::weighted(0.8))
            .prop_map(|(actions, commit)| Step::Run(actions, commit)),
        2 => Just(Step::Hold),
        2 => any::<usize>().prop_map(Step::LetGo),
        2 => Just(Step::Vacuum),
        1 => Just(Step::Truncate),
    ]
}
