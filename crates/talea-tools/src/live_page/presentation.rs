//! The live page of a study or a load, while it runs.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Response;
use serde::Serialize;
use talea_http::server::{Limits, OpenGate, Server};
use talea_load::{Meters, Plan, Window};
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval};

use talea_agent::history::{Extent, History};
use talea_agent::live::answered;
use talea_agent::page::{About, Feed, Recorded, add_safety, now, routes};
use talea_agent::web::{Hosts, check_host};
use talea_study::study::{CaseResult, Scraper, Watcher};
use talea_view::families::Between;

/// All of a study is kept, as far as there is room.
const EXTENT: Extent = Extent {
    seconds: Duration::from_secs(6 * 3600),
    minutes: Duration::from_secs(24 * 3600),
    bytes: 64 << 20,
};
const EVERY: Duration = Duration::from_secs(1);

/// Serves a page on a thread of its own, which clients of a load cannot make late.
pub(crate) struct Presentation {
    feed: Arc<Feed>,
    address: SocketAddr,
    stage: Arc<Stage>,
    end: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// The data that is shown, and its sources.
struct Stage {
    feed: Arc<Feed>,
    scene: Mutex<Scene>,
}

#[derive(Default)]
struct Scene {
    status: Status,
    scraper: Option<Scraper>,
    meters: Option<Meters>,
    under_way: Option<UnderWay>,
}

struct UnderWay {
    number: usize,
    window: Window,
    /// How many requests it makes, or else how long it goes on, as far as that is known.
    requests: Option<u64>,
    time: Option<Duration>,
    begun: Instant,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Status {
    title: String,
    state: State,
    cases: Vec<CaseStatus>,
    report: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    #[default]
    Waiting,
    Running,
    Done,
    Failed,
    Stopped,
}

#[derive(Clone, Debug, Default, Serialize)]
struct CaseStatus {
    name: String,
    text: String,
    state: State,
    /// The share that is done; `None` if it is not known how much there is to do.
    progress: Option<f64>,
    seconds: Option<f64>,
    requests: u64,
    rate: Option<f64>,
    /// The share of the requests that failed.
    errors: Option<f64>,
    p50_ms: Option<f64>,
    p90_ms: Option<f64>,
    p99_ms: Option<f64>,
    server_p50_ms: Option<f64>,
    server_p90_ms: Option<f64>,
    server_p99_ms: Option<f64>,
}

impl Presentation {
    /// Listens, and serves until it is ended or the process ends.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub(crate) fn start(address: SocketAddr, title: &str) -> Result<Self> {
        let feed =
            Feed::new(About { title: title.to_owned(), ..About::default() }, History::new(EXTENT));
        let stage = Arc::new(Stage { feed: feed.clone(), scene: Mutex::default() });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let server = {
            let _entered = runtime.enter();
            Server::bind(address, Limits::default(), Arc::new(OpenGate))
        };
        let server = match server {
            Ok(server) => server,
            Err(error) => {
                // To drop it would wait for its threads, and panics within another runtime.
                runtime.shutdown_background();
                return Err(error).context("--live");
            }
        };
        let address = server.local_addr();
        let (end, ended) = oneshot::channel();
        let hosts = Hosts::new(address, Vec::new(), None);
        let app = routes(feed.clone())
            .layer(from_fn_with_state(hosts, check_host))
            .layer(map_response(with_safety));
        let shown = stage.clone();
        let serve = async move {
            tokio::spawn(show(shown));
            let ended = async {
                let _ = ended.await;
            };
            server.serve(app, ended).await;
        };
        let thread = std::thread::Builder::new().name("live page".to_owned());
        let thread = thread.spawn(move || runtime.block_on(serve));
        let thread = thread.context("cannot start a thread for the live page")?;
        Ok(Self { feed, address, stage, end, thread })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub(crate) fn watcher(&self) -> Arc<dyn Watcher> {
        self.stage.clone()
    }

    /// Shows that it is over, with the report if there is one, and ends.
    pub(crate) fn end(self, report: Option<String>) {
        {
            let mut scene = self.stage.scene();
            let is_done =
                report.is_some() || scene.status.cases.iter().all(|case| case.state == State::Done);
            scene.status.state = if is_done { State::Done } else { State::Stopped };
            scene.status.report = report;
            self.feed.set_study(&scene.status);
        }
        self.feed.close();
        // It fails only when the thread is gone.
        let _ = self.end.send(());
        let _ = self.thread.join();
    }
}

async fn with_safety(mut response: Response) -> Response {
    add_safety(response.headers_mut());
    response
}

impl Stage {
    fn scene(&self) -> MutexGuard<'_, Scene> {
        self.scene.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for Stage {
    fn begin_run(&self, subject: &str, cases: Vec<(String, String)>, meters: &Meters) {
        let cases = cases.into_iter();
        let mut scene = self.scene();
        *scene = Scene {
            status: Status {
                title: subject.to_owned(),
                state: State::Running,
                cases: cases
                    .map(|(name, text)| CaseStatus { name, text, ..CaseStatus::default() })
                    .collect(),
                report: None,
            },
            meters: Some(meters.clone()),
            ..Scene::default()
        };
        self.feed.set_study(&scene.status);
    }

    fn serves(&self, scraper: Scraper) {
        self.scene().scraper = Some(scraper);
    }

    fn begin_case(&self, number: usize, window: &Window, plan: &Plan) {
        let mut scene = self.scene();
        if let Some(case) = scene.status.cases.get_mut(number) {
            case.state = State::Running;
        }
        scene.under_way = Some(UnderWay {
            number,
            window: window.clone(),
            requests: plan.requests(),
            time: plan.model.time(),
            begun: Instant::now(),
        });
        self.feed.set_study(&scene.status);
    }

    fn end_case(&self, number: usize, result: &CaseResult) {
        let mut scene = self.scene();
        scene.note_under_way();
        scene.under_way = None;
        if let Some(case) = scene.status.cases.get_mut(number) {
            case.end(result);
        }
        self.feed.set_study(&scene.status);
    }
}

impl Scene {
    /// Notes how far the case is that is under way.
    fn note_under_way(&mut self) {
        let Some(UnderWay { number, window, requests, time, begun }) = &self.under_way else {
            return;
        };
        let Some(case) = self.status.cases.get_mut(*number) else { return };
        let (done, times) = (window.requests_done(), window.response_times());
        let ms = |quantile| times.quantile(quantile).map(|found| found.ms);
        let seconds = begun.elapsed().as_secs_f64();
        case.seconds = Some(seconds);
        case.requests = done;
        let by_requests = requests.filter(|all| *all > 0).map(|all| done as f64 / all as f64);
        // Requests that are under way then are finished.
        let by_time = time.map(|all| (seconds / all.as_secs_f64()).min(1.0));
        case.progress = by_requests.or(by_time);
        case.rate = (seconds > 0.0).then(|| done as f64 / seconds);
        case.errors = (done > 0).then(|| window.requests_failed() as f64 / done as f64);
        (case.p50_ms, case.p90_ms, case.p99_ms) = (ms(0.5), ms(0.9), ms(0.99));
    }
}

impl CaseStatus {
    fn end(&mut self, result: &CaseResult) {
        let client = &result.client;
        self.state = if result.is_clean() { State::Done } else { State::Failed };
        self.progress = Some(1.0);
        self.seconds = Some(client.seconds);
        self.requests = client.requests_sent;
        self.rate = client.mean_rate;
        self.errors = (self.requests > 0).then(|| client.failed as f64 / self.requests as f64);
        (self.p50_ms, self.p90_ms, self.p99_ms) = (client.p50_ms, client.p90_ms, client.p99_ms);
        let Some(server) = &result.server else { return };
        [self.server_p50_ms, self.server_p90_ms, self.server_p99_ms] =
            server.quantiles.each().map(|found| found.and_then(Between::estimate).map(|it| it.0));
    }
}

/// Reads both sides each second, for as long as it is polled.
async fn show(stage: Arc<Stage>) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // A scraper that is put in meanwhile is of another service.
        let scraper = stage.scene().scraper.take();
        let time = now();
        let began = Instant::now();
        let mut families = Vec::new();
        if let Some(mut scraper) = scraper {
            // A service that does not answer is seen by its absence.
            families = answered(scraper.families().await);
            stage.scene().scraper.get_or_insert(scraper);
        }
        let ended = Instant::now();
        let mut scene = stage.scene();
        scene.note_under_way();
        stage.feed.set_study(&scene.status);
        let of_clients = scene.meters.as_ref().map(Meters::snapshot);
        drop(scene);
        if let Some(snapshot) = of_clients {
            families.extend(snapshot.to_families());
        }
        let recorded = Recorded { time, began, ended, families, processes: Vec::new() };
        // Its history has no file.
        let _ = stage.feed.add(recorded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_reads_what_a_load_counts() {
        use talea_agent::page::clients;
        let read = [clients::RESPONSE_TIME, clients::CENSORED, clients::FAILED];
        assert_eq!(read, [Meters::RESPONSE_TIME, Meters::CENSORED, Meters::FAILED]);
    }
}
