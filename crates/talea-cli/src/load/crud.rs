//! The built-in sequence: create, list, get, update, delete, on a collection of items.

use std::fmt;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, StatusCode};
use serde::Deserialize;

use super::target::Target;

/// One request of the sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// POST a new item to the collection.
    Create,
    /// GET the collection.
    List,
    /// GET the item.
    Get,
    /// PUT the item.
    Update,
    /// DELETE the item.
    Delete,
}

/// The steps in their order.
pub(super) const SEQUENCE: [Step; 5] =
    [Step::Create, Step::List, Step::Get, Step::Update, Step::Delete];

impl Step {
    /// The status that says that the step was done.
    pub fn expected(self) -> StatusCode {
        match self {
            Step::Create => StatusCode::CREATED,
            Step::List | Step::Get | Step::Update => StatusCode::OK,
            Step::Delete => StatusCode::NO_CONTENT,
        }
    }

    fn method(self) -> Method {
        match self {
            Step::Create => Method::POST,
            Step::List | Step::Get => Method::GET,
            Step::Update => Method::PUT,
            Step::Delete => Method::DELETE,
        }
    }

    fn body(self) -> Option<&'static [u8]> {
        match self {
            Step::Create => Some(br#"{"item":{"value":true}}"#),
            Step::Update => Some(br#"{"item":{"value":false}}"#),
            Step::List | Step::Get | Step::Delete => None,
        }
    }

    fn needs_item(self) -> bool {
        matches!(self, Step::Get | Step::Update | Step::Delete)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Create => "create",
            Step::List => "list",
            Step::Get => "get",
            Step::Update => "update",
            Step::Delete => "delete",
        })
    }
}

/// The request of a step; none when it needs an item and there is none.
pub(super) fn request(
    step: Step,
    target: &Target,
    item: Option<&ItemPath>,
) -> Option<Request<Full<Bytes>>> {
    let path = if step.needs_item() { &item?.0 } else { target.path() };
    let mut request = Request::new(Full::from(step.body().unwrap_or_default()));
    *request.method_mut() = step.method();
    *request.uri_mut() = path.clone();
    let headers = request.headers_mut();
    headers.insert(HOST, target.host_header().clone());
    if step.body().is_some() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    Some(request)
}

/// Where a created item is found.
pub(super) struct ItemPath(hyper::Uri);

impl ItemPath {
    /// Reads the item's id from the answer to its creation, `{"data":{"id":…}}`; none when there is
    /// no id that could stand in a path.
    pub(super) fn of_created(target: &Target, body: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Created {
            data: Item,
        }
        #[derive(Deserialize)]
        struct Item {
            id: Id,
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Id {
            Number(u64),
            Text(String),
        }

        let created: Created = serde_json::from_slice(body).ok()?;
        let collection = target.path().path();
        let path = match created.data.id {
            Id::Number(id) => format!("{collection}/{id}"),
            Id::Text(id) if is_one_segment(&id) => format!("{collection}/{id}"),
            Id::Text(_) => return None,
        };
        path.parse().ok().map(Self)
    }
}

/// Whether the text is one path segment as it stands, such as a UUID.
fn is_one_segment(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_~.".contains(&byte);
    !text.is_empty() && text.bytes().all(plain) && text != "." && text != ".."
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        "http://127.0.0.1:4000/api/items".parse().unwrap()
    }

    #[test]
    fn a_created_item_is_found_under_its_id() {
        let item = ItemPath::of_created(&target(), br#"{"data":{"id":7,"value":true}}"#).unwrap();
        let request = request(Step::Get, &target(), Some(&item)).unwrap();
        assert_eq!(request.uri(), "/api/items/7");
        assert_eq!(request.method(), Method::GET);
        assert_eq!(request.headers()[HOST], "127.0.0.1:4000");
    }

    #[test]
    fn an_id_may_be_a_text_that_fits_a_path() {
        let found = |body: &str| ItemPath::of_created(&target(), body.as_bytes());
        assert_eq!(found(r#"{"data":{"id":"3f-a_1"}}"#).unwrap().0, "/api/items/3f-a_1");
        assert!(found(r#"{"data":{"id":"a/b"}}"#).is_none());
        assert!(found(r#"{"data":{"id":".."}}"#).is_none());
        assert!(found(r#"{"data":{}}"#).is_none());
        assert!(found("not json").is_none());
    }

    #[test]
    fn a_step_that_needs_an_item_has_no_request_without_one() {
        for step in SEQUENCE {
            let possible = request(step, &target(), None).is_some();
            assert_eq!(possible, matches!(step, Step::Create | Step::List), "{step}");
        }
    }
}
