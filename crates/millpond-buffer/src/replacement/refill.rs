//! Refilling a freelist, ahead of demand: clean victims first, then dirty ones, written together.
//!
//! It sweeps as a session would and takes the clean frames that it is offered. It writes the dirty
//! ones that it meets, in file order with neighbours joined. Then it takes as many of those as are
//! missing.
//!
//! **Failure.** A page that can't be written stays dirty and in its frame. The others are written
//! nevertheless, and the error is reported.

use super::evict::{MAX_ROUNDS, free_into, no_claims, sweep_clean};
use super::victim_batch::MAX_CLAIMS;
use crate::core::session::SessionCore;
use crate::error::BufferError;
use crate::policy::{self, Swept};
use crate::stats::Histogram;
use crate::write_back::async_write::write_victims;

/// How many dirty pages are gathered before they are written: of more pages, more are neighbours.
const GATHER: usize = 256;

/// Brings a freelist to `target` frames, if possible. A call frees no more than were missing
/// when it began, even if others take some meanwhile.
pub(crate) fn refill(
    session: &SessionCore,
    list: usize,
    target: usize,
) -> Result<usize, BufferError> {
    let pool = &session.pool;
    let most = target.saturating_sub(pool.free.len_of(list, &pool.frames));
    let (mut freed, mut failure) = (0, None);
    let mut search = Search::new(pool.frames());
    let mut newcomers = pool.frames();
    while freed < most && search.goes_on() {
        let mut dirty = Vec::new();
        while freed + dirty.len() < most && dirty.len() < GATHER && search.goes_on() {
            let wanted = (most - freed - dirty.len()).min(MAX_CLAIMS);
            let (claims, met, swept) = sweep_clean(session, wanted, &mut newcomers);
            let clean = free_into(session, claims, list);
            // Gather also dirty pages that are not needed now. Those that left the newcomers'
            // queue are met again only when the hand comes round. Until then, dirty pages that
            // no session wants would push out others that are in use.
            let met = met.frames().iter().copied();
            let new: Vec<u32> = met.filter(|frame| !dirty.contains(frame)).collect();
            search.spend(&swept);
            found(session, &mut search, clean);
            dirty.extend(new);
            freed += clean;
        }
        let written =
            write_and_free(session, &dirty, list, most.saturating_sub(freed), &mut failure);
        found(session, &mut search, written);
        freed += written;
    }
    match failure {
        Some(error) if freed == 0 => Err(error),
        _ => Ok(freed),
    }
}

/// If a search found frames, counts how many it examined, as a foreground sweep does.
fn found(session: &SessionCore, search: &mut Search, frames: usize) {
    if frames > 0 && search.examined > 0 {
        session.count_log2(Histogram::ExaminedAhead, search.examined as u64);
        search.examined = 0;
    }
}

/// Writes pages in file order, neighbours joined, and then takes `most` of their unused frames.
fn write_and_free(
    session: &SessionCore,
    frames: &[u32],
    list: usize,
    most: usize,
    failure: &mut Option<BufferError>,
) -> usize {
    if let Err(error) = write_frames(session, frames) {
        *failure = Some(error);
    }
    let mut freed = 0;
    for batch in frames.chunks(MAX_CLAIMS) {
        let mut claims = no_claims(session);
        let unused = |number: &u32| policy::is_spent(session.pool.frames[*number as usize].usage());
        for number in batch.iter().copied().filter(unused).take(most.saturating_sub(freed)) {
            // In use again, or still dirty: it stays.
            let _ = claims.claim(number);
        }
        freed += free_into(session, claims, list);
    }
    freed
}

/// Writes the pages in some frames in file order, neighbours joined. Those that can't be
/// written stay.
pub(crate) fn write_frames(session: &SessionCore, frames: &[u32]) -> Result<(), BufferError> {
    let descriptor = |number: u32| &session.pool.frames[number as usize];
    let named = frames.iter().filter_map(|&number| Some((descriptor(number).page()?, number)));
    write_victims(session, named.collect())
}

/// How long to look for frames: while some are found, or each round of the pool brings one nearer.
struct Search {
    frames: usize,
    /// Frames examined since one was last found.
    examined: usize,
    hope: bool,
}

impl Search {
    fn new(frames: usize) -> Self {
        Self { frames, examined: 0, hope: true }
    }

    fn spend(&mut self, swept: &Swept) {
        self.hope |= swept.hope;
        self.examined += swept.examined;
    }

    /// Whether to go on. Called once per piece.
    fn goes_on(&mut self) -> bool {
        let rounds = self.examined / self.frames.max(1);
        rounds == 0 || (self.hope && rounds < MAX_ROUNDS)
    }
}
