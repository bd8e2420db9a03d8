//! From the steps of a scenario to requests.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};

use crate::connection::Protocol;
use crate::scenario::{FillError, Scenario, Step, Template, Values};
use crate::target::Target;

/// The requests of a scenario's steps, as far as they are known beforehand.
#[derive(Debug)]
pub(super) struct Requests(Vec<Prepared>);

#[derive(Debug)]
struct Prepared {
    method: Method,
    uri: Result<Uri, UriTemplate>,
    headers: HeaderMap,
    filled_headers: Vec<(HeaderName, Template)>,
    body: Result<Bytes, Template>,
}

/// A path with variables, and the part of the URL before it.
#[derive(Debug)]
struct UriTemplate {
    before: String,
    path: Template,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoRequest {
    /// The variable at this place has no value that could stand there.
    Unfilled(usize),
    /// With its values it is no request.
    Malformed,
}

impl Requests {
    /// Those of a scenario.
    /// Fails when a path, behind that of the target, is none.
    pub(super) fn new(
        scenario: &Scenario,
        target: &Target,
        protocol: Protocol,
    ) -> Result<Self, String> {
        let prepared = scenario.steps.iter().map(|step| Prepared::new(step, target, protocol));
        Ok(Self(prepared.collect::<Result<_, _>>()?))
    }

    pub(super) fn request(
        &self,
        step: usize,
        values: &Values,
    ) -> Result<Request<Full<Bytes>>, NoRequest> {
        let Prepared { method, uri, headers, filled_headers, body } = &self.0[step];
        let unfilled = |why: FillError| NoRequest::Unfilled(why.variable());
        let filled = |template: &Template, mut text: String| {
            template.fill(values, &mut text).map(|()| text).map_err(unfilled)
        };
        let body = match body {
            Ok(body) => body.clone(),
            Err(template) => filled(template, String::new())?.into(),
        };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method.clone();
        *request.uri_mut() = match uri {
            Ok(uri) => uri.clone(),
            Err(UriTemplate { before, path }) => {
                let text = filled(path, before.clone())?;
                text.parse().map_err(|_| NoRequest::Malformed)?
            }
        };
        request.headers_mut().clone_from(headers);
        for (name, template) in filled_headers {
            let value = HeaderValue::try_from(filled(template, String::new())?);
            let value = value.map_err(|_| NoRequest::Malformed)?;
            request.headers_mut().insert(name, value);
        }
        Ok(request)
    }
}

impl Prepared {
    fn new(step: &Step, target: &Target, protocol: Protocol) -> Result<Self, String> {
        let mut headers = step.headers.clone();
        // HTTP/2 has the authority in the URI.
        let mut before = match protocol {
            Protocol::Http2 => target.origin(),
            Protocol::Http1 { .. } => {
                headers.entry(HOST).or_insert_with(|| target.host_header().clone());
                String::new()
            }
        };
        if protocol == (Protocol::Http1 { keep_alive: false }) {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let begins = step.path.begins_with_slash();
        before.push_str(match target.path().path() {
            // The slash is the path's own.
            "/" if begins => "",
            path => path,
        });
        let uri = match step.path.constant() {
            Some(path) => {
                let text = format!("{before}{path}");
                Ok(text.parse().map_err(|error| format!("{}: {text}: {error}", step.name))?)
            }
            None => Err(UriTemplate { before, path: step.path.clone() }),
        };
        let body = match &step.body {
            None => Ok(Bytes::new()),
            Some(template) => match template.constant() {
                Some(text) => Ok(Bytes::from(text.to_owned())),
                None => Err(template.clone()),
            },
        };
        let filled_headers = step.filled_headers.clone();
        Ok(Self { method: step.method.clone(), uri, headers, filled_headers, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::CapturedValue;

    const HTTP1: Protocol = Protocol::Http1 { keep_alive: true };

    fn requests(url: &str, protocol: Protocol) -> (Scenario, Requests) {
        let scenario = Scenario::crud();
        let requests = Requests::new(&scenario, &url.parse().unwrap(), protocol).unwrap();
        (scenario, requests)
    }

    #[test]
    fn a_created_item_is_found_under_its_id() {
        let (scenario, requests) = requests("http://127.0.0.1:4000/api/items", HTTP1);
        let mut values = Values::new(&scenario.variables, 0);
        values.begin(&scenario.variables);
        let list = requests.request(1, &values).unwrap();
        assert_eq!(
            (list.method(), list.uri().to_string()),
            (&Method::GET, "/api/items".to_owned())
        );
        assert_eq!(list.headers()[HOST], "127.0.0.1:4000");
        for step in [2, 3, 4] {
            assert_eq!(requests.request(step, &values).unwrap_err(), NoRequest::Unfilled(0));
        }
        values.set(0, CapturedValue::text("3f/1"));
        assert_eq!(requests.request(2, &values).unwrap().uri(), "/api/items/3f%2F1");
    }

    #[test]
    fn a_path_stands_behind_the_targets() {
        for (url, list, get) in
            [("http://h", "/", "/7"), ("http://h/", "/", "/7"), ("http://h/a/", "/a", "/a/7")]
        {
            let (scenario, requests) = requests(url, HTTP1);
            let mut values = Values::new(&scenario.variables, 0);
            values.set(0, CapturedValue::text("7"));
            assert_eq!(requests.request(1, &values).unwrap().uri(), list, "{url}");
            assert_eq!(requests.request(2, &values).unwrap().uri(), get, "{url}");
        }
    }

    #[test]
    fn each_protocol_names_the_host_in_its_way() {
        let (scenario, of_2) = requests("http://h:81/a", Protocol::Http2);
        let values = Values::new(&scenario.variables, 0);
        let request = of_2.request(1, &values).unwrap();
        assert_eq!(request.uri(), "http://h:81/a");
        assert!(!request.headers().contains_key(HOST));
        let (_, closing) = requests("http://h:81/a", Protocol::Http1 { keep_alive: false });
        assert_eq!(closing.request(1, &values).unwrap().headers()[CONNECTION], "close");
    }
}
