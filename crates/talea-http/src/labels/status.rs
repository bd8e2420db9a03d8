//! How a response's status becomes a label value.

use std::borrow::Cow;

use super::error_kind::ErrorKind;

/// The values of the label `status` in [`Convention::Prometheus`](crate::Convention::Prometheus).
/// Other conventions define their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusLabel {
    /// The class, `1xx` to `5xx`. The series of `2xx`, `4xx` and `5xx` exist from the start.
    #[default]
    Class,
    /// The code, `100` to `599`. A series exists from the first response with its code on.
    Code,
}

/// The label values of statuses in a convention. Each value has an index: first 100 to
/// 599, then `odd` for statuses outside of that, then `none` for requests without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statuses {
    /// `1xx` to `5xx`, and one value for all else.
    Classes,
    /// The code.
    Codes { odd: &'static str, none: &'static str },
    /// `2XX`, `4XX`, `5XX`, and `XXX` for all else.
    Servant,
    /// The status of a gRPC call, in place of HTTP's. Any other number is `UNKNOWN`.
    Rpc(RpcCodes),
    /// The class or the code, and after these the errors of requests without a response.
    Client { by_code: bool },
}

/// The first of the numbers that stand for errors, one for each [`ErrorKind`].
pub(crate) const FIRST_ERROR: u16 = 1000;

/// The names of gRPC's status codes, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RpcCodes {
    names: &'static [&'static str; 17],
    /// Whether each has a series from the start, or `OK` only.
    are_likely: bool,
    /// A bit for each that is an error in the label `error_type`.
    errors: u32,
}

impl RpcCodes {
    pub(crate) const OK: u16 = 0;
    pub(crate) const CANCELLED: u16 = 1;
    pub(crate) const UNKNOWN: u16 = 2;
    pub(crate) const DEADLINE_EXCEEDED: u16 = 4;
    pub(crate) const PERMISSION_DENIED: u16 = 7;
    pub(crate) const UNIMPLEMENTED: u16 = 12;
    pub(crate) const INTERNAL: u16 = 13;
    pub(crate) const UNAVAILABLE: u16 = 14;
    pub(crate) const DATA_LOSS: u16 = 15;
    pub(crate) const UNAUTHENTICATED: u16 = 16;

    /// Go's names.
    pub(crate) const MIDDLEWARE: Self = Self {
        names: &[
            "OK",
            "Canceled",
            "Unknown",
            "InvalidArgument",
            "DeadlineExceeded",
            "NotFound",
            "AlreadyExists",
            "PermissionDenied",
            "ResourceExhausted",
            "FailedPrecondition",
            "Aborted",
            "OutOfRange",
            "Unimplemented",
            "Internal",
            "Unavailable",
            "DataLoss",
            "Unauthenticated",
        ],
        are_likely: true,
        errors: 0,
    };
    /// The errors of a server are those that its clients did not cause.
    pub(crate) const OPENTELEMETRY_SERVER: Self = Self {
        names: &[
            "OK",
            "CANCELLED",
            "UNKNOWN",
            "INVALID_ARGUMENT",
            "DEADLINE_EXCEEDED",
            "NOT_FOUND",
            "ALREADY_EXISTS",
            "PERMISSION_DENIED",
            "RESOURCE_EXHAUSTED",
            "FAILED_PRECONDITION",
            "ABORTED",
            "OUT_OF_RANGE",
            "UNIMPLEMENTED",
            "INTERNAL",
            "UNAVAILABLE",
            "DATA_LOSS",
            "UNAUTHENTICATED",
        ],
        are_likely: false,
        errors: 1 << Self::UNKNOWN
            | 1 << Self::DEADLINE_EXCEEDED
            | 1 << Self::UNIMPLEMENTED
            | 1 << Self::INTERNAL
            | 1 << Self::UNAVAILABLE
            | 1 << Self::DATA_LOSS,
    };
    pub(crate) const OPENTELEMETRY_CLIENT: Self =
        Self { errors: u32::MAX - 1, ..Self::OPENTELEMETRY_SERVER };

    /// The label `error_type` of the status with this index.
    pub(crate) fn error(self, index: usize) -> &'static str {
        if self.errors >> index & 1 == 1 { self.names[index] } else { "" }
    }
}

/// The value for no status, or one outside 100 to 599.
pub(crate) const OTHER: &str = "_OTHER";

const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", OTHER];
const SERVANT: [&str; 4] = ["2XX", "4XX", "5XX", "XXX"];
const CODES: usize = 500;

impl Statuses {
    pub(crate) fn count(self) -> usize {
        match self {
            Self::Classes => CLASSES.len(),
            Self::Codes { .. } => CODES + 2,
            Self::Servant => SERVANT.len(),
            Self::Rpc(codes) => codes.names.len(),
            Self::Client { by_code } => of_server(by_code).count() + ErrorKind::ALL.len(),
        }
    }

    /// Whether the value with this index has a series from the start.
    pub(crate) fn is_likely(self, index: usize) -> bool {
        match self {
            Self::Classes => matches!(CLASSES.get(index), Some(&("2xx" | "4xx" | "5xx"))),
            Self::Codes { .. } => false,
            // As servant-prometheus shows them.
            Self::Servant => true,
            Self::Rpc(codes) => codes.are_likely || index == usize::from(RpcCodes::OK),
            Self::Client { by_code: true } => false,
            Self::Client { .. } => Self::Classes.is_likely(index) || !self.error(index).is_empty(),
        }
    }

    pub(crate) fn indexing(self) -> StatusIndexing {
        match self {
            Self::Classes => StatusIndexing::Classes,
            Self::Codes { .. } => StatusIndexing::Codes,
            Self::Servant => StatusIndexing::Servant,
            Self::Rpc(_) => StatusIndexing::Rpc,
            Self::Client { by_code: false } => StatusIndexing::ClientClasses,
            Self::Client { by_code: true } => StatusIndexing::ClientCodes,
        }
    }

    pub(crate) fn text(self, index: usize) -> Cow<'static, str> {
        match self {
            Self::Classes => CLASSES.get(index).copied().unwrap_or(OTHER).into(),
            Self::Servant => SERVANT.get(index).copied().unwrap_or("XXX").into(),
            Self::Codes { .. } if index < CODES => (index + 100).to_string().into(),
            Self::Codes { odd, .. } if index == CODES => odd.into(),
            Self::Codes { none, .. } => none.into(),
            Self::Rpc(codes) => codes.names[index].into(),
            Self::Client { by_code } => {
                let of_server = of_server(by_code);
                of_server.text(index.min(of_server.count() - 1))
            }
        }
    }

    /// The error that the value with this index stands for, or nothing.
    pub(crate) fn error(self, index: usize) -> &'static str {
        let Self::Client { by_code } = self else { return "" };
        let kind = index.checked_sub(of_server(by_code).count()).map(|kind| ErrorKind::ALL[kind]);
        kind.map_or("", ErrorKind::as_str)
    }
}

/// The values for the responses of a server. The last is also the one for no response.
fn of_server(by_code: bool) -> Statuses {
    if by_code { Statuses::Codes { odd: OTHER, none: "" } } else { Statuses::Classes }
}

/// How [`Statuses`] are numbered: a number itself, since each request reads it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StatusIndexing {
    Classes,
    Codes,
    Servant,
    Rpc,
    ClientClasses,
    ClientCodes,
}

impl StatusIndexing {
    #[inline]
    pub(crate) fn index(self, status: Option<u16>) -> usize {
        match (self, status) {
            (Self::Classes, Some(status @ 100..=599)) => usize::from(status / 100 - 1),
            (Self::Classes, _) => CLASSES.len() - 1,
            (Self::Codes, Some(status @ 100..=599)) => usize::from(status - 100),
            (Self::Codes, Some(_)) => CODES,
            (Self::Codes, None) => CODES + 1,
            (other, status) => other.rare_index(status),
        }
    }

    #[inline(never)]
    fn rare_index(self, status: Option<u16>) -> usize {
        match (self, status) {
            (Self::Classes | Self::Codes, status) => self.index(status),
            (Self::Servant, Some(200..=299)) => 0,
            (Self::Servant, Some(400..=499)) => 1,
            (Self::Servant, Some(500..=599)) => 2,
            (Self::Servant, _) => 3,
            (Self::Rpc, Some(code @ 0..=16)) => usize::from(code),
            (Self::Rpc, _) => usize::from(RpcCodes::UNKNOWN),
            (Self::ClientClasses, status) => client_index(false, status),
            (Self::ClientCodes, status) => client_index(true, status),
        }
    }
}

fn client_index(by_code: bool, status: Option<u16>) -> usize {
    let error = match status {
        // The caller dropped the request.
        None => Some(ErrorKind::Cancelled as usize),
        Some(status) => status.checked_sub(FIRST_ERROR).map(usize::from),
    };
    let of_server = of_server(by_code);
    error.map_or_else(|| of_server.indexing().index(status), |error| of_server.count() + error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_statuses_have_one_value() {
        let codes = Statuses::Codes { odd: "odd", none: "none" };
        for (status, class, code, servant) in [
            (Some(100), "1xx", "100", "XXX"),
            (Some(204), "2xx", "204", "2XX"),
            (Some(304), "3xx", "304", "XXX"),
            (Some(499), "4xx", "499", "4XX"),
            (Some(599), "5xx", "599", "5XX"),
            (Some(600), "_OTHER", "odd", "XXX"),
            (Some(999), "_OTHER", "odd", "XXX"),
            (Some(99), "_OTHER", "odd", "XXX"),
            (None, "_OTHER", "none", "XXX"),
        ] {
            for (statuses, text) in
                [(Statuses::Classes, class), (codes, code), (Statuses::Servant, servant)]
            {
                assert_eq!(statuses.text(statuses.indexing().index(status)), text, "{status:?}");
            }
        }
    }

    const RPC: Statuses = Statuses::Rpc(RpcCodes::OPENTELEMETRY_SERVER);

    #[test]
    fn each_rpc_code_has_its_name_and_any_other_is_unknown() {
        for (codes, code, name, error) in [
            (RpcCodes::MIDDLEWARE, Some(5), "NotFound", ""),
            (RpcCodes::MIDDLEWARE, Some(17), "Unknown", ""),
            (RpcCodes::OPENTELEMETRY_SERVER, Some(0), "OK", ""),
            (RpcCodes::OPENTELEMETRY_SERVER, Some(5), "NOT_FOUND", ""),
            (RpcCodes::OPENTELEMETRY_SERVER, Some(14), "UNAVAILABLE", "UNAVAILABLE"),
            (RpcCodes::OPENTELEMETRY_SERVER, None, "UNKNOWN", "UNKNOWN"),
            (RpcCodes::OPENTELEMETRY_CLIENT, Some(0), "OK", ""),
            (RpcCodes::OPENTELEMETRY_CLIENT, Some(5), "NOT_FOUND", "NOT_FOUND"),
            (RpcCodes::OPENTELEMETRY_CLIENT, Some(16), "UNAUTHENTICATED", "UNAUTHENTICATED"),
        ] {
            let statuses = Statuses::Rpc(codes);
            let index = statuses.indexing().index(code);
            assert_eq!((&*statuses.text(index), codes.error(index)), (name, error), "{code:?}");
        }
    }

    #[test]
    fn every_index_belongs_to_a_status() {
        for statuses in
            [Statuses::Classes, Statuses::Codes { odd: "", none: "" }, Statuses::Servant, RPC]
        {
            let all = (0..FIRST_ERROR).map(Some).chain([None]);
            let mut indices: Vec<_> = all.map(|status| statuses.indexing().index(status)).collect();
            indices.sort_unstable();
            indices.dedup();
            assert!(indices.into_iter().eq(0..statuses.count()));
        }
    }
}
