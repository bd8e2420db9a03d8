//! Reading the service's metrics over HTTP, one scrape after another on one connection.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use http_body_util::Full;
use hyper::header::{ACCEPT, HOST, HeaderValue};
use hyper::{Method, Request, StatusCode};
use talea_load::scenario::Names;
use talea_load::{Answer, Keep, Protocol, Session, Target};

use super::endpoints::EndpointTimes;
use super::reading::Reading;
use talea_page::Family;
use talea_view::families;

const HTTP1: Protocol = Protocol::Http1 { keep_alive: true };

const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// For how long a scrape that the study cannot do without is tried again.
const TRIES_FOR: Duration = Duration::from_secs(5);
/// How long it waits before a scrape that failed is tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// A client of a service's metrics port.
pub struct Scraper {
    target: Target,
    names: Arc<Names>,
    session: Session,
    pub(super) scrapes: u64,
}

impl Scraper {
    pub(super) fn new(target: Target, names: Arc<Names>) -> Self {
        Self {
            session: Session::new(target.clone(), HTTP1, ANSWERS_WITHIN),
            target,
            names,
            scrapes: 0,
        }
    }

    /// A scraper of the same target, with a connection of its own.
    pub(super) fn another(&self) -> Self {
        Self::new(self.target.clone(), Arc::clone(&self.names))
    }

    /// Scrapes once. The instant lies half-way between the question and the answer.
    pub(super) async fn scrape(&mut self) -> Result<(Instant, Reading)> {
        self.scrapes += 1;
        let asked = Instant::now();
        let answer = self.page(None).await?;
        let at = asked + asked.elapsed() / 2;
        let text = talea_parse::utf8(&answer.body);
        let reading =
            text.map_err(Into::into).and_then(|text| Reading::from_text(text, &self.names));
        Ok((at, reading.with_context(|| self.target.to_string())?))
    }

    /// The response times of each endpoint: in protobuf, if the service can, since that has native
    /// histograms. None if the service gives no answer.
    pub(super) async fn endpoint_times(&mut self) -> Option<EndpointTimes> {
        let answer = self.page(Some(families::ACCEPT)).await.ok()?;
        Some(EndpointTimes::read(&answer.body, &self.names))
    }

    /// All families. In protobuf, if the service can.
    pub async fn families(&mut self) -> Result<Vec<Family>> {
        Ok(talea_parse::page(&self.page(Some(families::ACCEPT)).await?.body)?)
    }

    /// Scrapes once, and some times more where it fails: a service that starts anew can be read.
    pub(super) async fn scrape_at_last(&mut self) -> Result<(Instant, Reading)> {
        self.scrape_beside(None).await
    }

    /// As [`Self::scrape_at_last`], of a service that may just have started and answers at `service` too. Once it
    /// does, a page that it refuses is not asked for again.
    pub(super) async fn scrape_beside(
        &mut self,
        service: Option<&Target>,
    ) -> Result<(Instant, Reading)> {
        let begun = tokio::time::Instant::now();
        let mut service = service.map(|at| Self::new(at.clone(), Arc::clone(&self.names)));
        let mut serves = false;
        loop {
            let scraped = self.scrape().await;
            let Err(error) = &scraped else { return scraped };
            let is_refused = error.downcast_ref().is_some_and(OtherStatus::is_refusal);
            if begun.elapsed() >= TRIES_FOR || serves && is_refused {
                return scraped;
            }
            if let (true, Some(service)) = (is_refused, &mut service) {
                serves = service.page(None).await.is_ok();
            }
            tokio::time::sleep(TRY_AGAIN_AFTER).await;
        }
    }

    /// Empties the service's database and resets its task peaks.
    pub(super) async fn reset(&mut self) -> Result<()> {
        let target = self.target.with_path("/study/reset").map_err(|error| anyhow!(error))?;
        self.ask(Method::POST, target, StatusCode::NO_CONTENT, None).await?;
        Ok(())
    }

    /// The service's page of metrics, in a format of that `Accept` header.
    async fn page(&mut self, accept: Option<&'static str>) -> Result<Answer> {
        self.ask(Method::GET, self.target.clone(), StatusCode::OK, accept).await
    }

    async fn ask(
        &mut self,
        method: Method,
        of: Target,
        expected: StatusCode,
        accept: Option<&'static str>,
    ) -> Result<Answer> {
        let mut request = Request::new(Full::default());
        *request.method_mut() = method.clone();
        *request.uri_mut() = of.path().clone();
        request.headers_mut().insert(HOST, of.host_header().clone());
        let accept = accept.map(HeaderValue::from_static);
        request.headers_mut().extend(accept.map(|accept| (ACCEPT, accept)));
        let answer = self.session.send(request, Keep::Body).await;
        let answer = answer.map_err(|trouble| anyhow!("{method} {of}: {trouble}"))?;
        if answer.status != expected {
            let words = format!("{method} {of} returned {}, expected {expected}", answer.status);
            bail!(OtherStatus { status: answer.status, words });
        }
        Ok(answer)
    }
}

/// An answer with another status than expected.
#[derive(Debug)]
struct OtherStatus {
    status: StatusCode,
    words: String,
}

impl fmt::Display for OtherStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl OtherStatus {
    fn is_refusal(&self) -> bool {
        self.status.is_client_error() && self.status != StatusCode::TOO_MANY_REQUESTS
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_page_that_never_comes_is_given_up_once_and_not_as_often_as_one_that_is_refused() {
        // It takes connections, and answers nothing.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let target = format!("http://{}/metrics", silent.local_addr().unwrap());
        let names = Arc::new(Names::built_in("talea").unwrap());
        let mut scraper = Scraper::new(Target::page(&target).unwrap(), names.clone());
        let begun = tokio::time::Instant::now();
        assert!(scraper.scrape_at_last().await.is_err());
        assert_eq!(scraper.scrapes, 1, "after {:?}", begun.elapsed());

        drop(silent);
        let mut scraper = Scraper::new(Target::page(&target).unwrap(), names);
        assert!(scraper.scrape_at_last().await.is_err());
        assert!(scraper.scrapes > 10, "{}", scraper.scrapes);
    }

    /// Serves `/metrics` and `/items`, each by the status for the number of the request to it.
    fn server(status: fn(path: &str, number: usize) -> u16) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let mut asked = Vec::new();
            for stream in listener.incoming().map(Result::unwrap) {
                let mut lines = BufReader::new(&stream).lines().map(Result::unwrap);
                let path = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
                lines.find(String::is_empty).unwrap();
                let status = status(&path, asked.iter().filter(|it| **it == path).count());
                let head = "connection: close\r\ncontent-length: 2";
                write!(&stream, "HTTP/1.1 {status} OK\r\n{head}\r\n\r\n#\n").unwrap();
                asked.push(path);
            }
        });
        url
    }

    #[tokio::test]
    async fn a_page_that_a_service_refuses_is_given_up_once_the_service_answers_and_not_before() {
        let scrape = async |url: String| {
            let names = Arc::new(Names::built_in("talea").unwrap());
            let [page, items] = ["metrics", "items"].map(|path| format!("{url}/{path}"));
            let mut scraper = Scraper::new(Target::page(&page).unwrap(), names);
            let scraped = scraper.scrape_beside(Some(&items.parse().unwrap())).await;
            (scraped, scraper.scrapes)
        };
        let (scraped, scrapes) = scrape(server(|path, number| match (path, number) {
            ("/metrics", _) => 404,
            (_, 0) => 503,
            _ => 200,
        }))
        .await;
        assert!(scraped.unwrap_err().to_string().contains("returned 404 Not Found"));
        assert!(scrapes <= 3, "{scrapes}");
        assert!(
            scrape(server(|path, number| match (path, number) {
                ("/metrics", 0) => 404,
                ("/metrics", _) => 200,
                _ => 503,
            }))
            .await
            .0
            .is_ok()
        );
    }
}
