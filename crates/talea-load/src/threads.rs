//! The threads that clients run on.
//!
//! Each has a runtime of its own, and a client stays where it began: its wakes reach no
//! other thread, and threads take no clients from each other. They are runtimes of many threads
//! with one alone: with 500 connections those of the current thread took a quarter more processor
//! time a request.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::plan::Plan;
use crate::request::Requests;
use crate::scenario::Cursors;

/// Of so many clients a thread mostly finds several that have an answer. One that has fewer sleeps
/// between answers, and waking it costs a good part of what a request does.
const CLIENTS_PER_THREAD: u64 = 100;

/// Threads that end, with whatever still runs on them, when this is dropped.
pub(super) struct Threads(Vec<Thread>);

struct Thread {
    runtime: ThreadRuntime,
    /// Of its own: threads that counted references to the same texts would wait for each other.
    plan: Arc<ThreadPlan>,
}

/// Some until it is dropped.
struct ThreadRuntime(Option<Runtime>);

/// A plan that is under way on one thread.
pub(super) struct ThreadPlan {
    pub(super) plan: Plan,
    pub(super) requests: Requests,
    /// All threads share it.
    pub(super) cursors: Arc<Cursors>,
    pub(super) started: Instant,
}

impl Drop for ThreadRuntime {
    fn drop(&mut self) {
        // Not by waiting for it, which a task of another runtime may not do.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Threads {
    /// As many as there are cores, but no more than have clients enough. The load starts when all
    /// are there.
    /// Fails when a path of the scenario, behind that of the target, is none, or the system allows
    /// no more threads or descriptors.
    pub(super) fn start(plan: &Plan) -> Result<Self, String> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let usual = plan.model.clients().div_ceil(CLIENTS_PER_THREAD).clamp(1, cores);
        let threads = plan.threads.unwrap_or(usual);
        let mut runtime = Builder::new_multi_thread();
        runtime.worker_threads(1).thread_name("clients").enable_all();
        let runtimes = (0..threads).map(|_| runtime.build().map(|it| ThreadRuntime(Some(it))));
        let runtimes = runtimes.collect::<Result<Vec<_>, _>>();
        let runtimes =
            runtimes.map_err(|error| format!("cannot start a thread for clients: {error}"))?;
        let cursors = Arc::new(Cursors::new(&plan.scenario.feeds, plan.shard));
        let started = Instant::now();
        let threads = runtimes.into_iter().map(|runtime| {
            let requests = Requests::new(&plan.scenario, &plan.target, plan.protocol)?;
            let plan = Arc::new(ThreadPlan {
                plan: plan.clone(),
                requests,
                cursors: cursors.clone(),
                started,
            });
            Ok(Thread { runtime, plan })
        });
        Ok(Self(threads.collect::<Result<_, String>>()?))
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn started(&self) -> Instant {
        self.0[0].plan.started
    }

    /// Starts a client's task, which is made of a plan, on the thread of its number.
    pub(super) fn spawn<F>(
        &self,
        client: u64,
        task: impl FnOnce(Arc<ThreadPlan>) -> F,
    ) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let thread = &self.0[(client % self.0.len() as u64) as usize];
        let runtime = thread.runtime.0.as_ref().expect("it is there until the thread is dropped");
        runtime.spawn(task(thread.plan.clone()))
    }
}
