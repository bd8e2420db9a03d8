//! The cookies of a client, as RFC 6265 has them for one host.

use std::time::SystemTime;

use hyper::Request;
use hyper::header::{COOKIE, HeaderMap, HeaderValue, SET_COOKIE};

/// The cookies that a server has set.
#[derive(Clone, Debug, Default)]
pub(super) struct Cookies(Vec<Cookie>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cookie {
    name: String,
    value: String,
    /// It is sent to paths below this one.
    path: String,
    /// It is sent over TLS only.
    is_secure: bool,
}

impl Cookies {
    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes those that a response to a request of a path sets.
    pub(super) fn take(&mut self, headers: &HeaderMap, path: &str) {
        for header in headers.get_all(SET_COOKIE) {
            let Ok(text) = header.to_str() else { continue };
            self.set(text, path);
        }
    }

    fn set(&mut self, text: &str, of_path: &str) {
        let mut parts = text.split(';').map(str::trim);
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else {
            return;
        };
        let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
        if name.is_empty() {
            return;
        }
        let mut cookie = Cookie { name, value, path: folder(of_path).to_owned(), is_secure: false };
        // Max-Age has precedence over Expires.
        let (mut age, mut expires) = (None, None);
        for attribute in parts {
            let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
            match name.trim().to_ascii_lowercase().as_str() {
                "path" if value.starts_with('/') => cookie.path = value.trim().to_owned(),
                "secure" => cookie.is_secure = true,
                "max-age" => age = value.trim().parse::<i64>().ok().or(age),
                "expires" => expires = httpdate::parse_http_date(value.trim()).ok().or(expires),
                _ => {}
            }
        }
        self.0.retain(|known| known.name != cookie.name || known.path != cookie.path);
        let is_over = match age {
            Some(age) => age <= 0,
            None => expires.is_some_and(|at| at <= SystemTime::now()),
        };
        if !is_over {
            self.0.push(cookie);
        }
    }

    /// Adds them to a request, behind those that it has.
    pub(super) fn add_to<B>(&self, request: &mut Request<B>, is_https: bool) {
        let Some(cookies) = self.header(request.uri().path(), is_https) else { return };
        let own = request.headers_mut().remove(COOKIE);
        let all = [own, Some(cookies)].into_iter().flatten();
        let all: Vec<Vec<u8>> = all.map(|header| header.as_bytes().to_vec()).collect();
        if let Ok(header) = HeaderValue::from_bytes(&all.join(&b"; "[..])) {
            request.headers_mut().insert(COOKIE, header);
        }
    }

    /// The header of a request of a path; none if there are none for it. Those with longer paths come first.
    fn header(&self, path: &str, is_https: bool) -> Option<HeaderValue> {
        let mut sent: Vec<&Cookie> = self
            .0
            .iter()
            .filter(|cookie| is_below(path, &cookie.path) && (is_https || !cookie.is_secure))
            .collect();
        sent.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs: Vec<_> = sent.iter().map(|it| format!("{}={}", it.name, it.value)).collect();
        (!pairs.is_empty()).then(|| HeaderValue::try_from(pairs.join("; ")).ok())?
    }
}

/// The path up to its last slash (RFC 6265, 5.1.4).
fn folder(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(at) => &path[..at],
    }
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || folder.ends_with('/') || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_sent_back_where_it_belongs_until_it_is_over() {
        const PAST: &str = "Expires=Thu, 01 Jan 1970 00:00:00 GMT";
        let over = format!("a=2; {PAST}");
        let kept = format!("a=2; {PAST}; Max-Age=60");
        for (set, path, sent) in [
            (&["a=1"][..], "/x/y", Some("a=1")),
            (&["a=1", "b=2; HttpOnly"], "/x/y", Some("a=1; b=2")),
            (&["a=1", "a=2"], "/x/y", Some("a=2")),
            (&["a=1; Path=/"], "/", Some("a=1")),
            (&["a=1; Path=/x"], "/xy", None),
            (&["a=1; Path=/; x", "b=2; Path=/x"], "/x/z", Some("b=2; a=1")),
            // The default is the folder of the request's path, /x.
            (&["a=1"], "/", None),
            (&["a=1; Secure"], "/x/y", None),
            (&["a=1", "a=; Max-Age=0"], "/x/y", None),
            (&["a=1", over.as_str()], "/x/y", None),
            (&["a=1", kept.as_str()], "/x/y", Some("a=2")),
            (&["=1", "a", ""], "/x/y", None),
        ] {
            let mut headers = HeaderMap::new();
            set.iter().for_each(|text| {
                headers.append(SET_COOKIE, HeaderValue::from_str(text).unwrap());
            });
            let mut cookies = Cookies::default();
            cookies.take(&headers, "/x/login");
            let header = cookies.header(path, false);
            assert_eq!(header.as_ref().map(|it| it.to_str().unwrap()), sent, "{set:?}");
        }
        let mut cookies = Cookies::default();
        cookies.set("a=1; Secure", "/");
        assert!(cookies.header("/", true).is_some());
    }
}
