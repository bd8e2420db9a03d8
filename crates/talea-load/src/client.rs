//! One client: the scenario over and over, one request at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Release};
use std::time::{Duration, Instant, SystemTime};

use async_channel::Receiver;
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{DATE, HeaderMap};
use tokio::task::JoinHandle;

use crate::connection::RequestError;
use crate::cookies::Cookies;
use crate::judge::judge;
use crate::meters::Meters;
use crate::model::Until;
use crate::plan::Plan;
use crate::samples::{Sample, SampleEnd};
use crate::scenario::{FeedEnded, Step, Values};
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
    cookies: Cookies,
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
    /// Whether a stop ended it before it was done.
    pub(super) was_stopped: bool,
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
        let Plan { target, timeout, protocol, scenario, seed, shard, .. } = &plan.plan;
        let session = Session::new(target.clone(), *protocol, *timeout);
        let values = scenario.values(seed.wrapping_add(shard.client(number)));
        let samples = plan.plan.samples.then(Vec::new);
        Self {
            session,
            values,
            cookies: Cookies::default(),
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
        let was_stopped = stop.cuts(self.iterate(until)).await;
        self.ended(was_stopped)
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
                let late = intended.elapsed();
                self.meters.late.observe(late);
                if let Some(published) = &self.meters.published {
                    published.late(late);
                }
                self.iteration(Some(intended), None).await;
                served.fetch_add(1, Release);
            }
        };
        let was_stopped = stop.cuts(serving).await;
        self.ended(was_stopped)
    }

    fn ended(mut self, was_stopped: bool) -> Ending {
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
        Ending { at, was_stopped, last_begun, tally: self.tally, samples }
    }

    async fn iterate(&mut self, until: Until) {
        match until {
            Until::Iterations(iterations) | Until::Total(iterations) => {
                for _ in 0..iterations {
                    if !self.iteration(None, None).await {
                        break;
                    }
                }
            }
            Until::Time(time) => {
                let end = self.plan.started + time;
                while self.iteration(None, Some(end)).await {}
            }
        }
    }

    /// Runs the scenario once: its first request was to be made at an instant, and none is made
    /// after another. False if that came, or a feed has no more rows.
    async fn iteration(&mut self, mut intended: Option<Instant>, end: Option<Instant>) -> bool {
        let plan = Arc::clone(&self.plan);
        let scenario = &plan.plan.scenario;
        if let Err(FeedEnded(feed)) = scenario.begin(&mut self.values, &plan.cursors) {
            self.tally.feed_ended = Some(feed);
            if intended.is_some() {
                self.tally.not_sent += 1;
                self.fail(Failure::FeedEnded(feed));
                self.meters.done.inc();
            }
            return false;
        }
        self.cookies.clear();
        let flow = scenario.flow(self.values.random());
        for (n, step) in scenario.steps_of(flow) {
            let begun = Instant::now();
            if end.is_some_and(|end| begun >= end) {
                return false;
            }
            self.step(n, step, begun, intended.take()).await;
            if let Some(think) = &step.think {
                tokio::time::sleep(think.draw(self.values.random())).await;
            }
        }
        true
    }

    /// Does one step, which is a request and those that it is redirected to.
    async fn step(
        &mut self,
        n: usize,
        step: &Step,
        mut begun: Instant,
        mut intended: Option<Instant>,
    ) {
        let mut request = match self.plan.requests.request(n, &self.values) {
            Ok(request) => request,
            Err(why) => {
                self.tally.not_sent += 1;
                self.fail(Failure::NoRequest(n, why));
                self.meters.done.inc();
                return;
            }
        };
        let mut redirects = 0;
        while let Some(next) = self.request(n, step, request, begun, intended, redirects).await {
            request = next;
            redirects += 1;
            begun = Instant::now();
            intended = None;
        }
    }

    /// Makes one request and counts it; captures the values of an answer that is the expected one. The request that
    /// it leads on to, if it is redirected.
    async fn request(
        &mut self,
        n: usize,
        step: &Step,
        mut request: Request<Full<Bytes>>,
        begun: Instant,
        intended: Option<Instant>,
        redirects: u32,
    ) -> Option<Request<Full<Bytes>>> {
        let plan = Arc::clone(&self.plan);
        let Plan { scenario, target, .. } = &plan.plan;
        if scenario.cookies {
            self.cookies.add_to(&mut request, target.is_https());
        }
        let keeps_request = scenario.cookies || scenario.redirects > 0;
        let again = keeps_request.then(|| request.clone());
        self.last_begun = Some(begun);
        let under_way = UnderWay { step: n, begun, intended };
        self.under_way = Some(under_way);
        let in_flight = self.meters.published.as_ref().map(|published| published.in_flight(n));
        let answer = self.session.send(request, step.keep()).await;
        drop(in_flight);
        self.under_way = None;
        if let Some(took) = self.session.take_connecting() {
            self.meters.connects.observe(took);
        }
        self.meters.done.inc();
        let answer = match answer {
            Ok(answer) => answer,
            Err(trouble) => {
                self.has_no_answer(under_way, trouble);
                return None;
            }
        };
        self.tally.sent += 1;
        // Once: a date is not parsed in a moment.
        if self.tally.answers.is_empty() {
            self.tally.clock = ahead_of(&answer.headers);
        }
        self.tally.answer(answer.status);
        // From when it was to be made: waiting for a client is part of it.
        let response = intended.map_or(answer.took, |intended| answer.at - intended);
        self.meters.answered(n, answer.head, response, answer.bytes);
        if let Some(published) = &self.meters.published {
            published.answered(n, answer.status, response);
        }
        if plan.plan.model.is_open() {
            self.meters.answered_since_sent(answer.took);
        }
        let mut next = None;
        let result = match again {
            Some(again) => {
                if scenario.cookies {
                    self.cookies.take(&answer.headers, again.uri().path());
                }
                match scenario.follows(step, &answer) {
                    true => scenario
                        .next_request(again, &answer, target, redirects + 1)
                        .map(|request| next = Some(request))
                        .map_err(|why| Failure::Redirect(n, why)),
                    false => judge(n, step, &answer, &mut self.values, &mut self.tally),
                }
            }
            None => judge(n, step, &answer, &mut self.values, &mut self.tally),
        };
        let end = SampleEnd::Answered(answer.status, result.err());
        self.sample(under_way, answer.at - answer.took, answer.took, Some(response), end);
        if let Err(failure) = result {
            self.fail(failure);
        }
        next
    }

    fn has_no_answer(&mut self, request: UnderWay, trouble: RequestError) {
        match trouble.was_sent() {
            true => self.tally.sent += 1,
            false => self.tally.not_sent += 1,
        }
        let failure = Failure::RequestError(request.step, trouble);
        match trouble.is_timeout() {
            true => self.censor(request, SampleEnd::TimedOut(failure)),
            false => {
                let end = SampleEnd::Failed(failure);
                self.sample(request, request.begun, request.begun.elapsed(), None, end);
            }
        }
        self.fail(failure);
    }

    /// Counts a request that has no answer as one that took at least as long as it was waited for.
    fn censor(&mut self, request: UnderWay, end: SampleEnd) {
        let UnderWay { step, begun, intended } = request;
        let progress = self.session.progress();
        let sent = progress.sent_at.unwrap_or(begun);
        let (took, waited) = (sent.elapsed(), intended.unwrap_or(sent).elapsed());
        self.meters.censored(step, progress, begun, waited);
        if self.plan.plan.model.is_open() {
            self.meters.censored_since_sent(took);
        }
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
        if let Some(published) = &self.meters.published {
            published.failed(failure.step());
            if !failure.is_answered() {
                published.unanswered(failure.step());
            }
        }
        self.tally.fail(failure);
    }
}

/// By how many seconds the clock of this machine is ahead of the date of a response.
fn ahead_of(headers: &HeaderMap) -> Option<f64> {
    let date = headers.get(DATE)?.to_str().ok()?;
    let date = httpdate::parse_http_date(date).ok()?;
    Some(match SystemTime::now().duration_since(date) {
        Ok(ahead) => ahead.as_secs_f64(),
        Err(behind) => -behind.duration().as_secs_f64(),
    })
}
