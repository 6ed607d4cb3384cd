//! A client of the engine: a session, and the time that passes between its statements.
//!
//! A *busy* client sends one statement after the other, and what can be one statement is one. A
//! *slow* client thinks between statements, within transactions and between them. The server's
//! timeouts stop it: `statement_timeout` cancels a statement, and
//! `idle_in_transaction_session_timeout` ends the session, also while the client still thinks. The
//! next transaction has a new session.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use millpond_engine::session::{Commit, TransactionOptions};
use millpond_engine::timeout::{Cancellation, DeadlineGuard, StopReason, Watchdog, Watched};
use millpond_engine::{Engine, EngineError, EngineResult, Session};
use millpond_sync::clock;
use millpond_sync::sync::{Condvar, Mutex};
use millpond_sync::thread::sleep;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::plan::{Clients, Timeouts};
use super::timers::Tally;

/// The pace of all clients of a life.
#[derive(Clone)]
pub(super) enum Pace {
    Busy,
    Slow { seed: u64, watchdog: Arc<Watchdog>, tally: Arc<Tally> },
}

impl Pace {
    /// The pace that a plan asks for. Only slow clients draw a number.
    pub fn new(clients: &Clients, rng: &mut StdRng, tally: &Arc<Tally>) -> Self {
        match clients {
            Clients::Busy => Self::Busy,
            Clients::Slow(_) => Self::Slow {
                seed: rng.random(),
                watchdog: Arc::default(),
                tally: Arc::clone(tally),
            },
        }
    }
}

/// A client.
pub(super) struct Client {
    engine: Arc<Engine>,
    session: Option<Session>,
    slow: Option<Slow>,
}

impl Client {
    /// A client with a session. `number` tells the clients of a life apart.
    pub fn connect(engine: &Arc<Engine>, pace: &Pace, number: u64) -> EngineResult<Self> {
        let slow = match pace {
            Pace::Busy => None,
            Pace::Slow { seed, watchdog, tally } => {
                Some(Slow::new(seed ^ number << 32, watchdog, tally))
            }
        };
        let mut client = Self { engine: Arc::clone(engine), session: None, slow };
        client.reconnect()?;
        Ok(client)
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    pub fn is_slow(&self) -> bool {
        self.slow.is_some()
    }

    /// The session. An error if it has ended while the client was thinking.
    pub fn session(&mut self) -> EngineResult<&mut Session> {
        self.session.as_mut().ok_or(EngineError::Cancelled)
    }

    fn reconnect(&mut self) -> EngineResult<&mut Session> {
        if self.session.is_none() {
            let session = self.engine.session()?;
            if let Some(slow) = &mut self.slow {
                slow.serve(&session);
            }
            self.session = Some(session);
        }
        self.session()
    }

    /// One transaction with one statement, or with more if `work` makes pauses.
    pub fn transact<R>(
        &mut self,
        options: TransactionOptions,
        work: impl FnOnce(&mut Self) -> EngineResult<R>,
    ) -> EngineResult<R> {
        self.begin(options)?;
        match self.statement(work) {
            Ok(value) => {
                self.commit()?;
                Ok(value)
            }
            Err(error) => {
                self.abort();
                Err(error)
            }
        }
    }

    pub fn begin(&mut self, options: TransactionOptions) -> EngineResult<()> {
        self.reconnect()?.begin(options)
    }

    /// A statement, in a transaction. A slow client thinks first.
    pub fn statement<R>(
        &mut self,
        work: impl FnOnce(&mut Self) -> EngineResult<R>,
    ) -> EngineResult<R> {
        let result = self.think().and_then(|()| self.start_statement()).and_then(|()| work(self));
        self.end_statement();
        self.noted(result)
    }

    /// Between two steps that a busy client makes in one statement. A slow client has a statement
    /// for each, and thinks between them.
    pub fn pause(&mut self) -> EngineResult<()> {
        if self.is_slow() {
            self.end_statement();
            self.think()?;
            self.start_statement()?;
        }
        Ok(())
    }

    pub fn commit(&mut self) -> EngineResult<()> {
        let commit = |client: &mut Self| match client.session()?.commit()? {
            Commit::Done => Ok(()),
            Commit::Pending(_) => Err(EngineError::Internal { what: "a commit did not wait" }),
        };
        let result = self.think().and_then(|()| self.watched(commit));
        if result.is_err() {
            self.abort();
        }
        result
    }

    pub fn abort(&mut self) {
        if let Some(session) = &mut self.session {
            session.abort();
        }
    }

    /// A statement outside of a transaction.
    pub fn alone<R>(&mut self, work: impl FnOnce(&mut Session) -> EngineResult<R>) {
        // A failure changes nothing that an oracle knows of.
        if self.reconnect().is_ok() {
            let _ = self.watched(|client| work(client.session()?));
        }
    }

    /// Between two transactions. A busy client does not rest.
    pub fn rest(&mut self) {
        if let Some(slow) = &mut self.slow {
            sleep(slow.thinking_time());
        }
    }

    fn watched<R>(&mut self, work: impl FnOnce(&mut Self) -> EngineResult<R>) -> EngineResult<R> {
        let result = self.start_watch().and_then(|()| work(self));
        self.end_watch();
        self.noted(result)
    }

    fn start_statement(&mut self) -> EngineResult<()> {
        self.start_watch()?;
        self.session()?.start_statement()
    }

    fn end_statement(&mut self) {
        self.end_watch();
        if let Some(session) = &mut self.session {
            session.end_statement();
        }
    }

    fn start_watch(&mut self) -> EngineResult<()> {
        match (&mut self.slow, &mut self.session) {
            (Some(slow), Some(session)) => slow.begin_statement(session),
            _ => Ok(()),
        }
    }

    fn end_watch(&mut self) {
        if let Some(slow) = &mut self.slow {
            slow.end_statement();
        }
    }

    fn noted<R>(&mut self, result: EngineResult<R>) -> EngineResult<R> {
        if let (Some(slow), Err(error)) = (&self.slow, &result) {
            slow.note(error);
        }
        result
    }

    /// A slow client thinks. If that takes too long in a transaction, the session ends meanwhile.
    fn think(&mut self) -> EngineResult<()> {
        let (Some(slow), Some(session)) = (&mut self.slow, &self.session) else { return Ok(()) };
        let wakes_at = clock::now() + slow.thinking_time();
        let is_over = session.in_transaction() && slow.idle_until(wakes_at);
        if is_over {
            self.session = None;
            sleep(wakes_at.saturating_duration_since(clock::now()));
            return Err(EngineError::Cancelled);
        }
        Ok(())
    }
}

/// Wakes a client's thread when the watchdog ends its session.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        *self.rung.lock() = true;
        self.changed.notify_all();
    }
}

/// What a slow client has and a busy one lacks. The calls around statements are a server's.
struct Slow {
    rng: StdRng,
    timeouts: Timeouts,
    watchdog: Arc<Watchdog>,
    tally: Arc<Tally>,
    bell: Arc<Bell>,
    cancel: Option<Cancellation>,
    /// Counts statements, for the timeouts.
    statement: u64,
    watch: Option<DeadlineGuard>,
}

impl Slow {
    fn new(seed: u64, watchdog: &Arc<Watchdog>, tally: &Arc<Tally>) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        Self {
            timeouts: Timeouts::of_client(&mut rng),
            rng,
            watchdog: Arc::clone(watchdog),
            tally: Arc::clone(tally),
            bell: Arc::default(),
            cancel: None,
            statement: 0,
            watch: None,
        }
    }

    /// A new session begins.
    fn serve(&mut self, session: &Session) {
        session.locks().set_timeout(self.timeouts.lock);
        session.locks().set_deadlock_timeout(self.timeouts.deadlock);
        self.bell = Arc::default();
        let cancel = Cancellation::new(session.cancel_handle());
        cancel.on_end(Waker::from(Arc::clone(&self.bell)));
        self.cancel = Some(cancel);
    }

    fn thinking_time(&mut self) -> Duration {
        // Often none, at times minutes.
        match self.rng.random_range(0..10) {
            0..3 => Duration::ZERO,
            3..9 => Duration::from_millis(self.rng.random_range(1..20_000)),
            _ => Duration::from_millis(self.rng.random_range(20_000..300_000)),
        }
    }

    fn begin_statement(&mut self, session: &Session) -> EngineResult<()> {
        let Some(cancel) = &self.cancel else { return Ok(()) };
        self.statement += 1;
        session.clear_cancel();
        cancel.begin(self.statement).map_err(|_| EngineError::Cancelled)?;
        let watched = Watched::Statement(self.statement);
        let watch = |timeout| self.watchdog.watch(cancel, watched, timeout);
        self.watch = self.timeouts.statement.map(watch);
        Ok(())
    }

    fn end_statement(&mut self) {
        self.watch = None;
        if let Some(cancel) = &self.cancel {
            cancel.end();
        }
    }

    /// Is idle in a transaction. Returns whether the session ended before its client was ready.
    fn idle_until(&mut self, wakes_at: std::time::Instant) -> bool {
        let (Some(cancel), Some(timeout)) = (&self.cancel, self.timeouts.idle_in_transaction)
        else {
            sleep(wakes_at.saturating_duration_since(clock::now()));
            return false;
        };
        cancel.begin_idle(self.statement + 1);
        let watch = self.watchdog.watch(cancel, Watched::Idle(self.statement + 1), timeout);
        let mut rung = self.bell.rung.lock();
        while !*rung && clock::now() < wakes_at {
            rung = self.bell.changed.wait_until(rung, wakes_at);
        }
        drop(rung);
        drop(watch);
        cancel.end_idle();
        let is_over = cancel.reason() == Some(StopReason::IdleInTransaction);
        if is_over {
            self.tally.idle_in_transaction();
        }
        is_over
    }

    /// Counts what has stopped a statement.
    fn note(&self, error: &EngineError) {
        match error {
            EngineError::LockTimeout => self.tally.lock_timeout(),
            EngineError::Deadlock { .. } => self.tally.deadlock(),
            EngineError::Cancelled => {
                let reason = self.cancel.as_ref().and_then(Cancellation::reason);
                if reason == Some(StopReason::StatementTimeout) {
                    self.tally.statement_timeout();
                }
            }
            _ => {}
        }
    }
}
