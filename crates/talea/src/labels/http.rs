//! The labels of HTTP: few values, whatever a client sends.

use super::{LabelText, LabelValue};

/// The class of a response's status code: `1xx` to `5xx`, and `_OTHER` for what is
/// no status code.
///
/// Cost: an index into a table; a family of it is looked up by arithmetic.
///
/// ```
/// use talea::StatusClass;
///
/// assert_eq!(StatusClass::of(404), StatusClass::ClientError);
/// assert_eq!(StatusClass::of(404).as_str(), "4xx");
/// assert_eq!(StatusClass::of(999).as_str(), "_OTHER");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatusClass {
    /// `1xx`.
    Informational,
    /// `2xx`.
    Successful,
    /// `3xx`.
    Redirection,
    /// `4xx`.
    ClientError,
    /// `5xx`.
    ServerError,
    /// Below 100 or above 599.
    Other,
}

impl StatusClass {
    /// The class of a status code.
    #[inline]
    pub const fn of(status: u16) -> Self {
        match status {
            100..=199 => Self::Informational,
            200..=299 => Self::Successful,
            300..=399 => Self::Redirection,
            400..=499 => Self::ClientError,
            500..=599 => Self::ServerError,
            _ => Self::Other,
        }
    }
}

/// A request's method: the methods of the standards, and `_OTHER` for the rest, as
/// OpenTelemetry names it. A client that makes up methods makes no series.
///
/// Cost: a comparison or two with texts of its length; a family of it is looked up
/// by arithmetic.
///
/// ```
/// use talea::HttpMethod;
///
/// assert_eq!(HttpMethod::of("GET"), HttpMethod::Get);
/// // Methods are case-sensitive (RFC 9110, 9.1).
/// assert_eq!(HttpMethod::of("get").as_str(), "_OTHER");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HttpMethod {
    /// `GET`.
    Get,
    /// `HEAD`.
    Head,
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
    /// `DELETE`.
    Delete,
    /// `CONNECT`.
    Connect,
    /// `OPTIONS`.
    Options,
    /// `TRACE`.
    Trace,
    /// `PATCH` (RFC 5789).
    Patch,
    /// `QUERY`: a `GET` with content.
    Query,
    /// Any other.
    Other,
}

impl HttpMethod {
    /// The method of a request's first line.
    #[inline]
    pub fn of(method: &str) -> Self {
        match method {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "POST" => Self::Post,
            "PUT" => Self::Put,
            "DELETE" => Self::Delete,
            "CONNECT" => Self::Connect,
            "OPTIONS" => Self::Options,
            "TRACE" => Self::Trace,
            "PATCH" => Self::Patch,
            "QUERY" => Self::Query,
            _ => Self::Other,
        }
    }
}

/// The values in the order of the enum, with texts that need no escape.
macro_rules! values {
    ($type:ident: $($value:ident $text:literal,)*) => {
        impl $type {
            /// Each value, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$value),*];

            /// The text that a scrape shows.
            #[inline]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)*
                }
            }
        }

        impl LabelValue for $type {
            #[inline]
            fn is_known_early() -> bool {
                true
            }
            #[inline]
            fn cardinality() -> Option<usize> {
                Some(Self::ALL.len())
            }
            #[inline]
            fn index(&self) -> usize {
                *self as usize
            }
            #[inline]
            fn write(&self, out: &mut LabelText) {
                out.push_raw(self.as_str());
            }
            #[inline]
            fn write_nth(n: usize, out: &mut LabelText) {
                out.push_raw(Self::ALL.get(n).map_or("", |value| value.as_str()));
            }
        }
    };
}

values! { StatusClass:
    Informational "1xx",
    Successful "2xx",
    Redirection "3xx",
    ClientError "4xx",
    ServerError "5xx",
    Other "_OTHER",
}

values! { HttpMethod:
    Get "GET",
    Head "HEAD",
    Post "POST",
    Put "PUT",
    Delete "DELETE",
    Connect "CONNECT",
    Options "OPTIONS",
    Trace "TRACE",
    Patch "PATCH",
    Query "QUERY",
    Other "_OTHER",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_the_class_that_it_begins_with() {
        for status in (0..1000).chain([u16::MAX]) {
            let expected = match status {
                100..600 => format!("{}xx", status / 100),
                _ => "_OTHER".to_owned(),
            };
            assert_eq!(StatusClass::of(status).as_str(), expected);
        }
    }

    #[test]
    fn every_method_is_known_by_its_text_and_no_other_is() {
        for &method in HttpMethod::ALL {
            assert_eq!(HttpMethod::of(method.as_str()), method);
            let lower = method.as_str().to_lowercase();
            assert_eq!(HttpMethod::of(&lower), HttpMethod::Other);
        }
        for other in ["", "GE", "GETS", "FOO", "_OTHER", "ＧＥＴ"] {
            assert_eq!(HttpMethod::of(other), HttpMethod::Other, "{other}");
        }
    }

    #[test]
    fn numbers_and_values_are_the_same_order() {
        fn check<T: LabelValue + Copy>(all: &[T]) {
            assert_eq!(T::cardinality(), Some(all.len()));
            for (n, value) in all.iter().enumerate() {
                assert_eq!(value.index(), n);
                let (mut own, mut nth) = (LabelText::new(), LabelText::new());
                value.write(&mut own);
                T::write_nth(n, &mut nth);
                assert_eq!(own.as_bytes(), nth.as_bytes());
            }
        }
        check(StatusClass::ALL);
        check(HttpMethod::ALL);
    }
}
