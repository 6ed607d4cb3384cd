//! How waits on a key end and what wakers decide: the types of [`parking`](crate::parking), which
//! the scheduler of simulated threads shares.

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParkResult {
    /// Woken, with the waker's token.
    Unparked(usize),
    /// `validate` returned `false`: the thread has not waited.
    Invalid,
    /// The deadline has passed. (In a model that is so only if the model lets time pass.)
    TimedOut,
}

/// The decision about a parked thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// Wake it and consider the next.
    Unpark,
    /// Leave it and all that follow.
    Stop,
}

/// What [`unpark_filter`](crate::parking::unpark_filter) is about to do, as its callback sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unparked {
    /// How many threads it will wake.
    pub woken: usize,
    /// Whether threads remain parked on the key.
    pub more: bool,
}
