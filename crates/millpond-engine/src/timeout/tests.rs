use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use millpond_sync::scheduler::{Limits, run};
use millpond_sync::thread::sleep;

use super::*;
use crate::proc::Interrupt;
use crate::{Engine, EngineConfig, Session};

const TIMEOUT: Duration = Duration::from_secs(60);
const LONGER: Duration = Duration::from_secs(70);

struct World {
    of_engine: Session,
    session: Cancellation,
    dog: Arc<Watchdog>,
}

/// Runs it in virtual time.
fn simulate(test: impl FnOnce(World) + Send + 'static) {
    let directory = tempfile::tempdir().unwrap();
    let mut config = EngineConfig::new(directory.path());
    config.buffers = 64;
    let world = || {
        let of_engine = Engine::open(config).unwrap().session().unwrap();
        let session = Cancellation::new(of_engine.cancel_handle());
        World { of_engine, session, dog: Arc::default() }
    };
    run(1, Limits::default(), || test(world())).unwrap();
}

#[test]
fn a_statement_that_lasts_too_long_is_cancelled() {
    simulate(|World { of_engine, session, dog }| {
        session.begin(1).unwrap();
        let _watch = dog.watch(&session, Watched::Statement(1), TIMEOUT);
        sleep(TIMEOUT / 2);
        assert_eq!(session.reason(), None);
        sleep(LONGER);
        assert_eq!(session.reason(), Some(StopReason::StatementTimeout));
        assert_eq!(of_engine.interrupt(), Some(Interrupt::Cancel));
        session.end();
        session.begin(2).unwrap();
        assert_eq!(session.reason(), None);
    });
}

#[test]
fn a_deadline_does_not_outlive_its_watch() {
    simulate(|World { of_engine, session, dog }| {
        session.begin(1).unwrap();
        drop(dog.watch(&session, Watched::Statement(1), TIMEOUT));
        sleep(LONGER);
        assert_eq!((session.reason(), of_engine.interrupt()), (None, None));
    });
}

#[test]
fn a_late_deadline_stops_no_other_statement() {
    simulate(|World { session, dog, .. }| {
        session.begin(1).unwrap();
        let _watch = dog.watch(&session, Watched::Statement(1), TIMEOUT);
        session.end();
        session.begin(2).unwrap();
        sleep(LONGER);
        assert_eq!(session.reason(), None);
    });
}

#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_session_that_is_idle_too_long_is_woken_and_ends() {
    simulate(|World { session, dog, .. }| {
        let bell = Arc::new(Bell::default());
        session.on_end(Waker::from(Arc::clone(&bell)));
        session.begin_idle(1);
        let _watch = dog.watch(&session, Watched::Idle(1), TIMEOUT);
        sleep(LONGER);
        assert!(bell.0.load(Ordering::SeqCst));
        assert_eq!(session.begin(2), Err(StopReason::IdleInTransaction));
    });
}

#[test]
fn a_session_that_goes_on_in_time_is_not_ended() {
    simulate(|World { session, dog, .. }| {
        session.begin_idle(1);
        let _watch = dog.watch(&session, Watched::Idle(1), TIMEOUT);
        session.end_idle();
        sleep(LONGER);
        assert_eq!(session.begin(2), Ok(()));
    });
}
