//! Parking of simulated threads, with the promises of [`parking`](crate::parking). It needs none of
//! parking's locks, because no other simulated thread runs meanwhile.

use std::time::Instant;

use super::place::{Place, current, held};
use super::world::{Status, Waiter};
use crate::park_outcome::{Filter, ParkResult, Unparked};

/// As [`parking::park`](crate::parking::park), for a simulated thread. Returns the closure if the
/// calling thread is not simulated.
pub(crate) fn park<V: FnOnce() -> bool>(
    (key, token): (usize, usize),
    validate: V,
    deadline: Option<Instant>,
) -> Result<ParkResult, V> {
    let Some(place) = current() else { return Err(validate) };
    place.point();
    if !held(validate) {
        return Ok(ParkResult::Invalid);
    }
    Ok(wait(&place, (key, token), deadline))
}

fn wait(place: &Place, (key, token): (usize, usize), deadline: Option<Instant>) -> ParkResult {
    let deadline = deadline.map(|deadline| place.reading(deadline));
    let mut state = place.world.lock();
    state.progress();
    let ticket = state.next_ticket;
    state.next_ticket += 1;
    state.waiters.push(Waiter { key, ticket, thread: place.me, token, woken: None });
    state.threads[place.me].status = Status::Blocked { on: "park", deadline };
    let mut state = place.world.give(state, place.me);
    let woken = state.waiters.iter().find(|w| w.ticket == ticket).and_then(|w| w.woken);
    state.waiters.retain(|waiter| waiter.ticket != ticket);
    woken.map_or(ParkResult::TimedOut, ParkResult::Unparked)
}

/// As [`parking::unpark_filter`](crate::parking::unpark_filter), for a simulated thread. Returns
/// the closures if the calling thread is not simulated.
pub(crate) fn unpark_filter<F: FnMut(usize) -> Filter, C: FnOnce(Unparked) -> usize>(
    key: usize,
    mut filter: F,
    callback: C,
) -> Result<Unparked, (F, C)> {
    let Some(place) = current() else { return Err((filter, callback)) };
    place.point();
    let queue: Vec<(u64, usize)> = {
        let state = place.world.lock();
        let queue = state.waiters.iter().filter(|w| w.key == key && w.woken.is_none());
        queue.map(|waiter| (waiter.ticket, waiter.token)).collect()
    };
    let mut chosen = Vec::new();
    let mut summary = Unparked { woken: 0, more: false };
    let mut stopped = false;
    for (ticket, token) in queue {
        let verdict = if stopped { Filter::Stop } else { held(|| filter(token)) };
        match verdict {
            Filter::Unpark => chosen.push(ticket),
            Filter::Stop => (stopped, summary.more) = (true, true),
        }
    }
    summary.woken = chosen.len();
    let token = held(|| callback(summary));
    let mut guard = place.world.lock();
    let state = &mut *guard;
    for waiter in state.waiters.iter_mut().filter(|waiter| chosen.contains(&waiter.ticket)) {
        waiter.woken = Some(token);
        state.threads[waiter.thread].status = Status::Ready;
    }
    Ok(summary)
}

/// Parks without a [`point`](super::point) first, so that no other thread runs between what the
/// caller did last and the parking.
pub(crate) fn park_at_once(key: usize, deadline: Option<Instant>) -> ParkResult {
    match current() {
        Some(place) => wait(&place, (key, 0), deadline),
        None => ParkResult::Invalid,
    }
}
