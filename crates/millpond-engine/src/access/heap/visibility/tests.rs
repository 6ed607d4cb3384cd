//! The visibility rules against two models: a table with every combination of events, and random
//! histories (`history`).

mod history;

use std::cell::RefCell;
use std::collections::BTreeMap;

use millpond_buffer::BlockNumber;

use super::*;
use crate::access::Tid;
use crate::transam::{ComboCids, Csn};

#[derive(Default)]
struct ModelFates {
    statuses: BTreeMap<Xid, XidStatus>,
    combos: RefCell<ComboCids>,
}

impl Fates for ModelFates {
    fn status(&self, xid: Xid) -> EngineResult<XidStatus> {
        Ok(self.statuses.get(&xid).copied().unwrap_or(XidStatus::InProgress))
    }
    fn combo(&self, id: CommandId) -> EngineResult<(CommandId, CommandId)> {
        self.combos.borrow().pair(id)
    }
}

fn header(xmin: Xid, cid: CommandId) -> TupleHeader {
    TupleHeader {
        xmin,
        xmax: Xid::INVALID,
        cid,
        flags: TupleFlags::NONE,
        natts: 1,
        ctid: Tid::new(BlockNumber(0), 1),
    }
}

/// An event that happened to a row version, as the table test enumerates it.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Event {
    OwnEarlier,
    OwnNow,
    CommittedBefore,
    CommittedAfter,
    Aborted,
    Running,
}

const EVENTS: [Event; 6] = [
    Event::OwnEarlier,
    Event::OwnNow,
    Event::CommittedBefore,
    Event::CommittedAfter,
    Event::Aborted,
    Event::Running,
];

const OWN: Xid = Xid(100);
const COMMAND: CommandId = CommandId(5);
const SNAPSHOT: Snapshot = Snapshot { csn: Csn(50), own: Some(OWN), command: COMMAND };

impl Event {
    fn xid(self, base: u64) -> Xid {
        match self {
            Event::OwnEarlier | Event::OwnNow => OWN,
            other => Xid(base + other as u64),
        }
    }
    fn command(self) -> CommandId {
        if self == Event::OwnEarlier { CommandId(4) } else { COMMAND }
    }
    fn status(self) -> XidStatus {
        match self {
            Event::CommittedBefore => XidStatus::Committed(SNAPSHOT.csn),
            Event::CommittedAfter => XidStatus::Committed(Csn(SNAPSHOT.csn.0 + 1)),
            Event::Aborted => XidStatus::Aborted,
            _ => XidStatus::InProgress,
        }
    }
    fn in_view(self) -> bool {
        matches!(self, Event::OwnEarlier | Event::CommittedBefore)
    }
    fn is_own(self) -> bool {
        matches!(self, Event::OwnEarlier | Event::OwnNow)
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Xmax {
    None,
    Locked(Event),
    Deleted(Event),
    Updated(Event),
}

fn all_xmax() -> Vec<Xmax> {
    let mut all = vec![Xmax::None];
    for event in EVENTS {
        all.extend([Xmax::Locked(event), Xmax::Deleted(event), Xmax::Updated(event)]);
    }
    all
}

/// A header for the two events, or `None` if the second cannot follow the first.
fn build(fates: &mut ModelFates, xmin: Event, xmax: Xmax) -> Option<TupleHeader> {
    let mut made = header(xmin.xid(10), xmin.command());
    fates.statuses.insert(made.xmin, xmin.status());
    let (event, flags) = match xmax {
        Xmax::None => return Some(made),
        Xmax::Locked(event) => (event, TupleFlags::XMAX_LOCK_ONLY),
        Xmax::Deleted(event) => (event, TupleFlags::NONE),
        Xmax::Updated(event) => (event, TupleFlags::UPDATED_AWAY),
    };
    // A transaction changes only what it can see. An own version is deleted only by its maker, in a
    // later command. A version whose maker is running or has failed is deleted by no other.
    let possible = match xmin {
        Event::OwnEarlier => event.is_own(),
        Event::OwnNow | Event::Aborted | Event::Running => false,
        Event::CommittedAfter => event != Event::CommittedBefore,
        Event::CommittedBefore => true,
    };
    if !possible {
        return None;
    }
    made.xmax = event.xid(30);
    fates.statuses.insert(made.xmax, event.status());
    made.flags = flags;
    if !matches!(xmax, Xmax::Locked(_)) {
        let before = TupleHeader { xmax: Xid::INVALID, flags: TupleFlags::NONE, ..made };
        let (cid, combo) =
            cid_for_delete(&before, made.xmax, event.command(), fates.combos.get_mut()).unwrap();
        made.cid = cid;
        if combo {
            made.flags = made.flags.with(TupleFlags::COMBO_CID);
        }
    }
    Some(made)
}

#[test]
fn every_combination_is_seen_as_its_events_say() {
    for xmin in EVENTS {
        for xmax in all_xmax() {
            let mut fates = ModelFates::default();
            let Some(header) = build(&mut fates, xmin, xmax) else { continue };
            let deleted = matches!(xmax, Xmax::Deleted(e) | Xmax::Updated(e) if e.in_view());
            assert_eq!(
                visible(&header, &SNAPSHOT, &fates).unwrap(),
                xmin.in_view() && !deleted,
                "{xmin:?} then {xmax:?}"
            );
            if xmin == Event::CommittedBefore {
                let frozen =
                    TupleHeader { flags: header.flags.with(TupleFlags::XMIN_FROZEN), ..header };
                assert_eq!(visible(&frozen, &SNAPSHOT, &fates).unwrap(), !deleted, "{xmax:?}");
            }
        }
    }
}

#[test]
fn every_combination_may_be_changed_as_the_latest_state_says() {
    for xmin in EVENTS {
        for xmax in all_xmax() {
            let mut fates = ModelFates::default();
            let Some(header) = build(&mut fates, xmin, xmax) else { continue };
            let made =
                matches!(xmin, Event::OwnEarlier | Event::CommittedBefore | Event::CommittedAfter);
            let expected = match xmax {
                _ if !made => UpdateStatus::Invisible,
                Xmax::None => UpdateStatus::Ok,
                Xmax::Locked(Event::Running) => UpdateStatus::InProgress(header.xmax),
                Xmax::Locked(_) => UpdateStatus::Ok,
                Xmax::Deleted(e) | Xmax::Updated(e) => match e {
                    Event::OwnEarlier => UpdateStatus::Invisible,
                    Event::OwnNow => UpdateStatus::SelfUpdated,
                    Event::Running => UpdateStatus::InProgress(header.xmax),
                    Event::Aborted => UpdateStatus::Ok,
                    _ if matches!(xmax, Xmax::Updated(_)) => UpdateStatus::Updated,
                    _ => UpdateStatus::Deleted,
                },
            };
            let status =
                update_status(&header, Some(OWN), COMMAND, LockStrength::Update, &fates).unwrap();
            assert_eq!(status, expected, "{xmin:?} then {xmax:?}");
        }
    }
}

#[test]
fn every_combination_is_dead_only_when_no_snapshot_sees_it() {
    let horizon = Horizon { csn: SNAPSHOT.csn, oldest_running_xid: Xid(3) };
    for xmin in EVENTS {
        for xmax in all_xmax() {
            let mut fates = ModelFates::default();
            let Some(header) = build(&mut fates, xmin, xmax) else { continue };
            let all_visible = xmin == Event::CommittedBefore;
            let expected = match (xmin, xmax) {
                (Event::OwnEarlier | Event::OwnNow | Event::Running, _) => {
                    Deadness::InsertInProgress(header.xmin)
                }
                (Event::Aborted, _) => Deadness::Dead,
                (_, Xmax::None | Xmax::Locked(_)) => Deadness::Live { all_visible },
                (_, Xmax::Deleted(e) | Xmax::Updated(e)) => match e {
                    Event::CommittedBefore => Deadness::Dead,
                    Event::CommittedAfter => Deadness::RecentlyDead(Csn(SNAPSHOT.csn.0 + 1)),
                    Event::Aborted => Deadness::Live { all_visible },
                    _ => Deadness::DeleteInProgress(header.xmax),
                },
            };
            assert_eq!(
                dead_to_all(&header, &horizon, &fates).unwrap(),
                expected,
                "{xmin:?} then {xmax:?}"
            );
        }
    }
}
