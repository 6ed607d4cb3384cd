//! Slow and simple models of the policies, to test the fast implementations.
//!
//! The front of a deque is its newest page. `c` is the number of pages.

use std::collections::VecDeque;

/// A model's hits and misses for a whole trace.
pub fn hits(model: &mut dyn FnMut(u32) -> bool, trace: &[u32]) -> Vec<bool> {
    trace.iter().map(|page| model(*page)).collect()
}

fn take(from: &mut VecDeque<u32>, page: u32) -> bool {
    let at = from.iter().position(|other| *other == page);
    at.is_some_and(|at| from.remove(at).is_some())
}

pub fn lru(c: usize) -> impl FnMut(u32) -> bool {
    let mut pages = VecDeque::new();
    move |page| {
        let hit = take(&mut pages, page);
        pages.push_front(page);
        pages.truncate(c);
        hit
    }
}

pub fn fifo(c: usize) -> impl FnMut(u32) -> bool {
    let mut pages = VecDeque::new();
    move |page| {
        let hit = pages.contains(&page);
        if !hit {
            pages.push_front(page);
            pages.truncate(c);
        }
        hit
    }
}

/// A ring of frames with a hand, as CLOCK is usually drawn. The fast implementation is a list.
pub fn clock(c: usize) -> impl FnMut(u32) -> bool {
    let (mut frames, mut hand) = (Vec::<(u32, bool)>::new(), 0);
    move |page| {
        if let Some(frame) = frames.iter_mut().find(|frame| frame.0 == page) {
            frame.1 = true;
            return true;
        }
        if frames.len() < c {
            frames.push((page, false));
            return false;
        }
        while frames[hand].1 {
            frames[hand].1 = false;
            hand = (hand + 1) % c;
        }
        frames[hand] = (page, false);
        hand = (hand + 1) % c;
        false
    }
}

/// Positions count from the back, so a page that enters at the front moves no other.
pub fn sieve(c: usize) -> impl FnMut(u32) -> bool {
    let (mut pages, mut hand) = (Vec::<(u32, bool)>::new(), 0);
    move |page| {
        if let Some(known) = pages.iter_mut().find(|known| known.0 == page) {
            known.1 = true;
            return true;
        }
        if pages.len() == c {
            loop {
                if hand >= pages.len() {
                    hand = 0;
                }
                if !pages[hand].1 {
                    break;
                }
                pages[hand].1 = false;
                hand += 1;
            }
            pages.remove(hand);
        }
        pages.push((page, false));
        // The hand passed the front before this page entered, so it is back at the start.
        if hand + 1 >= pages.len() && pages.len() == c && hand != 0 {
            hand = 0;
        }
        false
    }
}

pub fn two_q(c: usize) -> impl FnMut(u32) -> bool {
    let (kin, kout) = ((c / 4).max(1), (c / 2).max(1));
    let [mut a1in, mut a1out, mut am] = [(); 3].map(|()| VecDeque::new());
    move |page| {
        if take(&mut am, page) {
            am.push_front(page);
            return true;
        }
        if a1in.contains(&page) {
            return true;
        }
        let known = take(&mut a1out, page);
        if a1in.len() + am.len() == c {
            if a1in.len() > kin || am.is_empty() {
                a1out.extend(a1in.pop_back());
                a1out.rotate_right(1);
                a1out.truncate(kout);
            } else {
                am.pop_back();
            }
        }
        if known {
            am.push_front(page)
        } else {
            a1in.push_front(page)
        }
        false
    }
}

/// Figure 4 of the paper, case by case.
pub fn arc(c: usize) -> impl FnMut(u32) -> bool {
    let (mut p, [mut t1, mut t2, mut b1, mut b2]) = (0, [(); 4].map(|()| VecDeque::new()));
    move |page| {
        let replace = |in_b2: bool, p: usize, lists: [&mut VecDeque<u32>; 4]| {
            let [t1, t2, b1, b2] = lists;
            if !t1.is_empty() && (t1.len() > p || (in_b2 && t1.len() == p)) {
                t1.pop_back().into_iter().for_each(|page| b1.push_front(page));
            } else {
                t2.pop_back().into_iter().for_each(|page| b2.push_front(page));
            }
        };
        if take(&mut t1, page) || take(&mut t2, page) {
            t2.push_front(page);
            return true;
        }
        if b1.contains(&page) {
            p = c.min(p + (b2.len() / b1.len()).max(1));
            replace(false, p, [&mut t1, &mut t2, &mut b1, &mut b2]);
            take(&mut b1, page);
            t2.push_front(page);
            return false;
        }
        if b2.contains(&page) {
            p = p.saturating_sub((b1.len() / b2.len()).max(1));
            replace(true, p, [&mut t1, &mut t2, &mut b1, &mut b2]);
            take(&mut b2, page);
            t2.push_front(page);
            return false;
        }
        if t1.len() + b1.len() == c {
            if t1.len() < c {
                b1.pop_back();
                replace(false, p, [&mut t1, &mut t2, &mut b1, &mut b2]);
            } else {
                t1.pop_back();
            }
        } else if t1.len() + t2.len() + b1.len() + b2.len() >= c {
            if t1.len() + t2.len() + b1.len() + b2.len() == 2 * c {
                b2.pop_back();
            }
            replace(false, p, [&mut t1, &mut t2, &mut b1, &mut b2]);
        }
        t1.push_front(page);
        false
    }
}

/// The paper's rules, with a stack of page numbers.
pub fn lirs(c: usize) -> impl FnMut(u32) -> bool {
    let queue_limit = (c / 100).max(1);
    let low_limit = c - queue_limit;
    let [mut low, mut stack, mut queue, mut gone] = [(); 4].map(|()| VecDeque::<u32>::new());
    move |page| {
        let hit = low.contains(&page) || queue.contains(&page);
        if !hit && (low.len() >= low_limit || !queue.is_empty()) && low.len() + queue.len() == c {
            let out = queue.pop_back().expect("the queue has a page");
            if stack.contains(&out) {
                gone.push_front(out);
            }
            while gone.len() > 2 * c {
                let oldest = gone.pop_back().expect("a name");
                take(&mut stack, oldest);
            }
        }
        let in_stack = take(&mut stack, page);
        let filling = !hit && low.len() < low_limit && queue.is_empty();
        if low.contains(&page) {
            stack.push_front(page);
        } else if low_limit > 0 && (in_stack || filling) {
            take(&mut queue, page);
            take(&mut gone, page);
            low.push_front(page);
            stack.push_front(page);
            if low.len() > low_limit {
                let bottom =
                    *stack.iter().rev().find(|name| low.contains(name)).expect("a low page");
                take(&mut low, bottom);
                take(&mut stack, bottom);
                queue.push_front(bottom);
            }
        } else {
            take(&mut queue, page);
            queue.push_front(page);
            if !low.is_empty() {
                stack.push_front(page);
            }
        }
        while stack.back().is_some_and(|name| !low.contains(name)) {
            let name = stack.pop_back().expect("a name");
            take(&mut gone, name);
        }
        hit
    }
}

/// Algorithm 1 of the paper.
pub fn s3_fifo(c: usize) -> impl FnMut(u32) -> bool {
    let small_limit = (c / 10).max(1);
    let ghost_limit = c.saturating_sub(small_limit).max(1);
    let (mut small, mut main) = (VecDeque::<(u32, u8)>::new(), VecDeque::<(u32, u8)>::new());
    let mut ghost = VecDeque::new();
    move |page| {
        if let Some(known) = small.iter_mut().chain(&mut main).find(|known| known.0 == page) {
            known.1 = 3.min(known.1 + 1);
            return true;
        }
        let known = take(&mut ghost, page);
        while small.len() + main.len() >= c {
            if small.len() >= small_limit || main.is_empty() {
                while let Some((oldest, uses)) = small.pop_back() {
                    if uses <= 1 {
                        ghost.push_front(oldest);
                        ghost.truncate(ghost_limit);
                        break;
                    }
                    main.push_front((oldest, 0));
                }
            } else {
                while let Some((oldest, uses)) = main.pop_back().filter(|(_, uses)| *uses > 0) {
                    main.push_front((oldest, uses - 1));
                }
            }
        }
        if known {
            main.push_front((page, 0))
        } else {
            small.push_front((page, 0))
        }
        false
    }
}

/// Searches the trace for the next use of every page.
pub fn opt(c: usize, trace: &[u32]) -> impl FnMut(u32) -> bool {
    let (trace, mut at, mut pages) = (trace.to_vec(), 0, Vec::<u32>::new());
    move |page| {
        at += 1;
        if pages.contains(&page) {
            return true;
        }
        if pages.len() == c {
            let next =
                |page: &u32| trace[at..].iter().position(|p| p == page).unwrap_or(usize::MAX);
            let last = (0..c).max_by_key(|place| next(&pages[*place])).expect("a page");
            pages.swap_remove(last);
        }
        pages.push(page);
        false
    }
}
