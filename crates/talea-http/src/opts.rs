//! What can be chosen of how requests are told.

use std::time::Duration;

use http::Extensions;
use talea::{Bucketing, Error, LabelText, LabelValue, Registry};

use crate::convention::Convention;
use crate::endpoints::Endpoints;
use crate::families::Families;
use crate::status::StatusLabel;

/// Choices of how requests are told; [`register`](Self::register) ends them. Each has a
/// default, so `Opts::new()` is what [`Router::metered`](crate::axum::Router::metered) takes.
///
/// ```
/// use talea::{LabelValue, Registry};
/// use talea_http::{Convention, Opts};
///
/// #[derive(Clone, Copy, LabelValue)]
/// enum Plan { Free, Paid }
///
/// let registry = Registry::for_test()?;
/// let endpoints = Opts::new()
///     .convention(Convention::OpenTelemetry)
///     .durations(&[0.01, 0.1, 1.0])
///     .constant_label("region", "eu")
///     // What a layer outside of the metered ones puts into the request's extensions.
///     .request_label::<Plan>("plan")
///     .register(&registry)?;
/// # Ok::<(), talea::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "choices do nothing until they are registered"]
pub struct Opts {
    pub(crate) convention: Convention,
    pub(crate) prefix: String,
    pub(crate) server: Option<String>,
    pub(crate) status: StatusLabel,
    pub(crate) durations_by_status: bool,
    pub(crate) durations: Option<Vec<f64>>,
    pub(crate) sizes: Option<Vec<f64>>,
    pub(crate) bucketing: Bucketing,
    pub(crate) quantiles: Vec<f64>,
    pub(crate) constants: Vec<(String, String)>,
    pub(crate) of_request: Vec<FromExtensions>,
    pub(crate) of_response: Vec<FromExtensions>,
    pub(crate) hosts: Vec<String>,
    pub(crate) https: bool,
    pub(crate) timed_out_after: Option<Duration>,
}

impl Opts {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Under which names requests are told. Default: [`Convention::Prometheus`].
    pub fn convention(mut self, convention: Convention) -> Self {
        self.convention = convention;
        self
    }

    /// What stands before each metric's name, with a `_` between. Default: nothing.
    pub fn prefix(mut self, prefix: &str) -> Self {
        self.prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}_") };
        self
    }

    /// The label `server` of [`Convention::Caddy`]. Default: `srv0`, which is what Caddy
    /// calls the first one. Other conventions have no such label.
    pub fn server(mut self, name: &str) -> Self {
        self.server = Some(name.to_owned());
        self
    }

    /// What the label `status` of [`Convention::Prometheus`] holds. Default:
    /// [`StatusLabel::Class`]. Other conventions have a way of their own.
    pub fn status_label(mut self, status: StatusLabel) -> Self {
        self.status = status;
        self
    }

    /// Whether durations are told by the status too, so that an objective can be of successes
    /// alone: a histogram for each endpoint and status. Default: no, by
    /// [`Convention::Prometheus`] and [`Convention::Servant`]; others always do.
    pub fn durations_by_status(mut self, by_status: bool) -> Self {
        self.durations_by_status = by_status;
        self
    }

    /// Thresholds of the histograms of durations, in seconds, as
    /// [`talea::Opts::buckets`] takes them. Default: those of the convention.
    pub fn durations(mut self, seconds: &[f64]) -> Self {
        self.durations = Some(seconds.to_vec());
        self
    }

    /// Thresholds of the histograms of sizes, in bytes. Default: 256 B to 4 MiB, each four
    /// times the one before.
    pub fn sizes(mut self, bytes: &[f64]) -> Self {
        self.sizes = Some(bytes.to_vec());
        self
    }

    /// Which buckets the histograms have. Default: [`Bucketing::Dual`], both classic and
    /// native ones.
    pub fn bucketing(mut self, bucketing: Bucketing) -> Self {
        self.bucketing = bucketing;
        self
    }

    /// Which quantiles of the last ten minutes' durations are shown, from 0 to 1, ascending:
    /// those of `http_request_duration_seconds` in `http_request_duration_recent_seconds`,
    /// and so on. A request costs nothing more for them; whoever takes snapshots does the
    /// work, see [`Summary`](talea::Summary). Default: none.
    pub fn quantiles(mut self, quantiles: &[f64]) -> Self {
        self.quantiles = quantiles.to_vec();
        self
    }

    /// A label that every metric has, always of the same value.
    pub fn constant_label(mut self, name: &str, value: &str) -> Self {
        self.constants.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A label whose value stands in the request's extensions, as a `T`, when it arrives at
    /// the meter: a layer outside of it has put it there. It is empty where there is none.
    ///
    /// Its values are fixed, so the number of series stays bounded: an enum with
    /// `#[derive(LabelValue)]`, a `bool`, or a [`label_set!`](talea::label_set), whose
    /// values are read from a configuration. Others are an error of registering.
    pub fn request_label<T>(mut self, name: &str) -> Self
    where
        T: LabelValue + Send + Sync + 'static,
    {
        self.of_request.push(FromExtensions::new::<T>(name));
        self
    }

    /// The same from the response's extensions, where the handler puts it: a cache's hit or
    /// miss, say. What is in flight has no such label. It is empty where no response came.
    pub fn response_label<T>(mut self, name: &str) -> Self
    where
        T: LabelValue + Send + Sync + 'static,
    {
        self.of_response.push(FromExtensions::new::<T>(name));
        self
    }

    /// Tells requests apart by the host that they name (without a port, in any case), as far
    /// as it is one of these; others are `_other`. The label is `host`, by
    /// [`Convention::OpenTelemetry`] `server_address`. Default: no such label.
    pub fn hosts(mut self, hosts: &[&str]) -> Self {
        self.hosts = hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        self
    }

    /// Whether a request that does not say its scheme came by `https`: TLS ends somewhere
    /// before. Only [`Convention::OpenTelemetry`] tells. Default: no.
    pub fn https(mut self, https: bool) -> Self {
        self.https = https;
        self
    }

    /// After how long somebody outside gives requests up: one that is dropped no sooner than
    /// that counts as timed out, one that is dropped sooner as aborted. Say clearly less than
    /// the limit itself, a tenth less, since the meter's clock starts later. Default: never. A
    /// time-out that stands inside of the meter, as one that is
    /// [layered](crate::axum::Router::layer) does, need not be told here: it answers, and
    /// responses of status 408 and 504 count as timed out.
    pub fn timed_out_after(mut self, limit: Duration) -> Self {
        self.timed_out_after = Some(limit);
        self
    }

    /// Registers the metrics. A second time, with the same choices, finds those that are
    /// there.
    ///
    /// # Errors
    ///
    /// A metric's name is taken by another definition; the region is full; thresholds or
    /// quantiles are not ones; a label has a name that is none or is there already, or its
    /// type's values are not fixed; there are more than 16,384 combinations of what a
    /// request can say, or a response.
    pub fn register(self, registry: &Registry) -> Result<Endpoints, Error> {
        Ok(Endpoints::of(Families::register(self, registry)?))
    }
}

/// A label from extensions.
#[derive(Clone, Debug)]
pub(crate) struct FromExtensions {
    pub(crate) name: String,
    pub(crate) cardinality: fn() -> Option<usize>,
    pub(crate) fault: fn() -> Option<String>,
    index: fn(&Extensions) -> Option<usize>,
    write: fn(usize, &mut LabelText),
}

impl FromExtensions {
    fn new<T: LabelValue + Send + Sync + 'static>(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            cardinality: T::cardinality,
            fault: T::fault,
            index: |extensions| extensions.get::<T>().map(LabelValue::index),
            write: T::write_nth,
        }
    }

    /// How many values there are, with that of none.
    pub(crate) fn count(&self) -> usize {
        (self.cardinality)().unwrap_or(0) + 1
    }

    /// The number of what the extensions hold; 0 where they do not.
    #[inline]
    pub(crate) fn place(&self, extensions: &Extensions) -> usize {
        (self.index)(extensions).map_or(0, |index| index + 1)
    }

    pub(crate) fn text(&self, place: usize) -> String {
        let mut text = LabelText::new();
        if let Some(index) = place.checked_sub(1) {
            (self.write)(index, &mut text);
        }
        unescaped(&String::from_utf8_lossy(text.as_bytes()))
    }
}

/// A value as it was before it was escaped.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        plain.push(match c {
            '\\' => match rest.next() {
                Some('n') => '\n',
                Some(other) => other,
                None => '\\',
            },
            c => c,
        });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    talea::label_set! { struct Odd; }

    #[test]
    fn a_value_with_quotes_and_line_ends_is_told_as_it_is() {
        let texts = ["a\"b\\c\nd", "\\n", ""];
        Odd::fix(texts).unwrap();
        let label = FromExtensions::new::<Odd>("odd");
        assert_eq!(label.count(), 4);
        for (n, text) in texts.into_iter().enumerate() {
            let mut extensions = Extensions::new();
            extensions.insert(Odd::find(text).unwrap());
            assert_eq!(label.place(&extensions), n + 1);
            assert_eq!(label.text(n + 1), text);
        }
        assert_eq!(label.place(&Extensions::new()), 0);
        assert_eq!(label.text(0), "");
    }
}
