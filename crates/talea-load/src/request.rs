//! From the steps of a scenario to requests.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};

use crate::connection::Protocol;
use crate::scenario::{Body, NoRequest, Scenario, Step, Template, Values};
use crate::target::Target;
use crate::websocket::Messages;

/// The requests of a scenario's steps, as far as they are known beforehand.
#[derive(Debug)]
pub(super) struct Requests(Vec<Prepared>);

#[derive(Debug)]
struct Prepared {
    method: Method,
    uri: Result<Uri, UriTemplate>,
    headers: HeaderMap,
    filled_headers: Vec<(HeaderName, Template)>,
    body: Result<Bytes, Body>,
    /// What a WebSocket sends.
    messages: Option<Vec<Template>>,
}

/// A path with variables, and the part of the URL before it.
#[derive(Debug)]
struct UriTemplate {
    before: String,
    path: Template,
}

impl Requests {
    /// Those of a scenario.
    /// Fails when a path, behind that of the target, is none, or a step needs another protocol.
    pub(super) fn new(
        scenario: &Scenario,
        target: &Target,
        protocol: Protocol,
    ) -> Result<Self, String> {
        for step in &scenario.steps {
            let (is_http2, name) = (protocol == Protocol::Http2, &step.name);
            if step.grpc.is_some() && !is_http2 {
                return Err(format!(
                    "{name}: found {protocol}, expected HTTP/2 for gRPC; add --http2"
                ));
            }
            if step.websocket.is_some() && is_http2 {
                return Err(format!(
                    "{name}: found {protocol}, expected HTTP/1.1 for a WebSocket; leave out --http2"
                ));
            }
        }
        let prepared = scenario.steps.iter().map(|step| Prepared::new(step, target, protocol));
        Ok(Self(prepared.collect::<Result<_, _>>()?))
    }

    pub(super) fn request(
        &self,
        step: usize,
        values: &Values,
    ) -> Result<Request<Full<Bytes>>, NoRequest> {
        let Prepared { method, uri, headers, filled_headers, body, messages } = &self.0[step];
        let filled =
            |template: &Template, mut text: String| template.fill(values, &mut text).map(|()| text);
        let body = match body {
            Ok(body) => body.clone(),
            Err(body) => body.filled(values)?,
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
        if let Some(messages) = messages {
            let messages = messages.iter().map(|message| filled(message, String::new()));
            let messages = messages.collect::<Result<_, _>>()?;
            request.extensions_mut().insert(Messages(messages));
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
        before.push_str(match target.path().path().trim_end_matches('/') {
            "" if !step.path.begins_with_slash() => "/",
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
            Some(body) => body.bytes().ok_or_else(|| body.clone()),
        };
        let filled_headers = step.filled_headers.clone();
        let messages = step.websocket.as_ref().map(|websocket| websocket.send.clone());
        Ok(Self { method: step.method.clone(), uri, headers, filled_headers, body, messages })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{CapturedValue, Cursors, Shard};

    const HTTP1: Protocol = Protocol::Http1 { keep_alive: true };

    /// The request of a step of the built-in scenario, with the id of the item if there is one.
    fn request(
        url: &str,
        protocol: Protocol,
        step: usize,
        id: Option<&str>,
    ) -> Result<Request<Full<Bytes>>, NoRequest> {
        let scenario = Scenario::crud();
        let requests = Requests::new(&scenario, &url.parse().unwrap(), protocol).unwrap();
        let mut values = scenario.values(0);
        scenario.begin(&mut values, &Cursors::new(&[], Shard::ALL)).unwrap();
        id.into_iter().for_each(|id| values.set(0, CapturedValue::text(id)));
        requests.request(step, &values)
    }

    #[test]
    fn a_created_item_is_found_under_its_id() {
        let request = |step, id| request("http://127.0.0.1:4000/api/items", HTTP1, step, id);
        let list = request(1, None).unwrap();
        assert_eq!((list.method(), list.uri().path()), (&Method::GET, "/api/items"));
        assert_eq!(list.headers()[HOST], "127.0.0.1:4000");
        for step in [2, 3, 4] {
            assert_eq!(request(step, None).unwrap_err(), NoRequest::Unfilled(0));
        }
        assert_eq!(request(2, Some("3f/1")).unwrap().uri(), "/api/items/3f%2F1");
    }

    #[test]
    fn a_path_stands_behind_the_targets() {
        for (url, list, get) in [
            ("http://h", "/", "/7"),
            ("http://h/", "/", "/7"),
            ("http://h//", "/", "/7"),
            ("http://h/a/", "/a", "/a/7"),
        ] {
            let uri = |step| request(url, HTTP1, step, Some("7")).unwrap().uri().to_string();
            assert_eq!((uri(1).as_str(), uri(2).as_str()), (list, get), "{url}");
        }
    }

    #[test]
    fn each_protocol_names_the_host_in_its_way() {
        let list = |protocol| request("http://h:81/a", protocol, 1, None).unwrap();
        let of_2 = list(Protocol::Http2);
        assert_eq!(of_2.uri(), "http://h:81/a");
        assert!(!of_2.headers().contains_key(HOST));
        let closing = list(Protocol::Http1 { keep_alive: false });
        assert_eq!(closing.headers()[CONNECTION], "close");
    }
}
