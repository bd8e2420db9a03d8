//! One client: the scenario over and over, one request at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Release};
use std::time::{Duration, Instant};

use async_channel::Receiver;
use tokio::task::JoinHandle;

use crate::dry_run::capture;
use crate::meters::Meters;
use crate::model::Until;
use crate::plan::Plan;
use crate::samples::{Sample, SampleEnd};
use crate::scenario::{Step, Values};
use crate::session::Session;
use crate::stop::Stop;
use crate::tally::{Failure, Tally};
use crate::threads::ThreadPlan;

pub(super) struct Client {
    plan: Arc<ThreadPlan>,
    number: u64,
    meters: Meters,
    session: Session,
    values: Values,
    tally: Tally,
    samples: Option<Vec<Sample>>,
    /// The request that has neither an answer nor a failure yet.
    under_way: Option<UnderWay>,
    last_begun: Option<Instant>,
}

/// A request that has begun.
#[derive(Clone, Copy)]
struct UnderWay {
    step: usize,
    begun: Instant,
    /// When it was to be made, if that was decided beforehand.
    intended: Option<Instant>,
}

pub(super) struct Ending {
    pub(super) at: Instant,
    /// When its last request began, if it had one.
    pub(super) last_begun: Option<Instant>,
    pub(super) tally: Tally,
    pub(super) samples: Vec<Sample>,
}

/// A client's task, aborted when this is dropped.
pub(super) struct ClientTask(pub(super) JoinHandle<Ending>);

impl Drop for ClientTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Client {
    pub(super) fn new(plan: Arc<ThreadPlan>, number: u64, meters: Meters) -> Self {
        let Plan { target, timeout, protocol, scenario, seed, .. } = &plan.plan;
        let session = Session::new(target.clone(), *protocol, *timeout);
        let values = Values::new(&scenario.variables, seed.wrapping_add(number));
        let samples = plan.plan.samples.then(Vec::new);
        Self {
            session,
            values,
            samples,
            tally: Tally::default(),
            plan,
            number,
            meters,
            under_way: None,
            last_begun: None,
        }
    }

    pub(super) async fn run(mut self, until: Until, mut stop: Stop) -> Ending {
        stop.cuts(self.iterate(until)).await;
        self.ended()
    }

    /// Serves arrivals until there are no more, and counts those that it has served.
    pub(super) async fn serve(
        mut self,
        arrivals: Receiver<Instant>,
        served: Arc<AtomicU64>,
        mut stop: Stop,
    ) -> Ending {
        let serving = async {
            while let Ok(intended) = arrivals.recv().await {
                self.meters.late.observe(intended.elapsed());
                self.iteration(Some(intended), None).await;
                served.fetch_add(1, Release);
            }
        };
        stop.cuts(serving).await;
        self.ended()
    }

    fn ended(mut self) -> Ending {
        let at = Instant::now();
        if let Some(under_way) = self.under_way {
            self.tally.cut_off += 1;
            if self.session.progress().sent_at.is_some() {
                self.tally.sent += 1;
                self.tally.unanswered += 1;
            }
            self.censor(under_way, SampleEnd::CutOff);
        }
        self.tally.connections = self.session.opened();
        if self.plan.plan.protocol.keeps_alive() {
            self.tally.reconnects = self.session.opened().saturating_sub(1);
        }
        let (last_begun, samples) = (self.last_begun, self.samples.unwrap_or_default());
        Ending { at, last_begun, tally: self.tally, samples }
    }

    async fn iterate(&mut self, until: Until) {
        match until {
            Until::Iterations(iterations) | Until::Total(iterations) => {
                for _ in 0..iterations {
                    self.iteration(None, None).await;
                }
            }
            Until::Time(time) => {
                let end = self.plan.started + time;
                while self.iteration(None, Some(end)).await {}
            }
        }
    }

    /// Runs the scenario once: its first request was to be made at an instant, and none is made
    /// after another. False if that came.
    async fn iteration(&mut self, mut intended: Option<Instant>, end: Option<Instant>) -> bool {
        let plan = Arc::clone(&self.plan);
        self.values.begin(&plan.plan.scenario.variables);
        for (n, step) in plan.plan.scenario.steps.iter().enumerate() {
            let begun = Instant::now();
            if end.is_some_and(|end| begun >= end) {
                return false;
            }
            self.step(n, step, begun, intended.take()).await;
            if let Some(think) = &step.think {
                let nanos = |time: &Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                let range = nanos(think.start())..=nanos(think.end());
                tokio::time::sleep(Duration::from_nanos(self.values.between(range))).await;
            }
        }
        true
    }

    /// Does one step and counts it; captures the values of an answer that is the expected one.
    async fn step(&mut self, n: usize, step: &Step, begun: Instant, intended: Option<Instant>) {
        let request = match self.plan.requests.request(n, &self.values) {
            Ok(request) => request,
            Err(why) => {
                self.tally.not_sent += 1;
                self.fail(Failure::NoRequest(n, why));
                self.meters.done.inc();
                return;
            }
        };
        self.last_begun = Some(begun);
        let under_way = UnderWay { step: n, begun, intended };
        self.under_way = Some(under_way);
        let answer = self.session.send(request, !step.captures.is_empty()).await;
        self.under_way = None;
        if let Some(took) = self.session.take_connecting() {
            self.meters.connects.observe(took);
        }
        self.meters.done.inc();
        match answer {
            Ok(answer) => {
                self.tally.sent += 1;
                self.tally.answer(answer.status);
                // From when it was to be made: waiting for a client is part of it.
                let response = intended.map_or(answer.took, |intended| answer.at - intended);
                self.meters.answered(n, answer.head, response, answer.bytes);
                let result = match step.expected.includes(answer.status) {
                    true => capture(n, step, &answer, &mut self.values),
                    false => Err(Failure::Status(n, answer.status)),
                };
                let end = SampleEnd::Answered(answer.status, result.err());
                self.sample(under_way, answer.at - answer.took, answer.took, Some(response), end);
                if let Err(failure) = result {
                    self.fail(failure);
                }
            }
            Err(trouble) => {
                match trouble.was_sent() {
                    true => self.tally.sent += 1,
                    false => self.tally.not_sent += 1,
                }
                let failure = Failure::RequestError(n, trouble);
                match trouble.is_timeout() {
                    true => self.censor(under_way, SampleEnd::TimedOut(failure)),
                    false => {
                        let end = SampleEnd::Failed(failure);
                        self.sample(under_way, begun, begun.elapsed(), None, end);
                    }
                }
                self.fail(failure);
            }
        }
    }

    /// Counts a request that has no answer as one that took at least as long as it was waited for.
    fn censor(&mut self, request: UnderWay, end: SampleEnd) {
        let UnderWay { step, begun, intended } = request;
        let progress = self.session.progress();
        let sent = progress.sent_at.unwrap_or(begun);
        let (took, waited) = (sent.elapsed(), intended.unwrap_or(sent).elapsed());
        self.meters.censored(step, progress, begun, waited);
        self.sample(request, sent, took, Some(waited), end);
    }

    fn sample(
        &mut self,
        request: UnderWay,
        started: Instant,
        took: Duration,
        response: Option<Duration>,
        end: SampleEnd,
    ) {
        let Some(samples) = &mut self.samples else { return };
        samples.push(Sample {
            client: self.number,
            step: request.step,
            intended: request.intended.unwrap_or(started) - self.plan.started,
            started: started - self.plan.started,
            took,
            response,
            end,
        });
    }

    fn fail(&mut self, failure: Failure) {
        self.meters.failed.inc();
        self.tally.fail(failure);
    }
}
