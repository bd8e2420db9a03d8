//! Requests: series are put into messages until one is full.

use std::collections::HashMap;

use prost::Message;

use super::message::{Exemplar, Metadata, MetricType, Request, TimeSeries, v1};
use crate::record::{Counts, Record};

/// The most bytes of a request before it is compressed. Receivers take at most 32 MB.
const MOST_BYTES: usize = 4 << 20;

/// Requests of version 2.0.
#[derive(Debug)]
pub(crate) struct Requests {
    /// The most samples in one.
    most: u64,
    request: Request,
    places: HashMap<String, u32>,
    counts: Counts,
    bytes: usize,
    full: Vec<Record>,
}

/// A series' metadata, by text.
#[derive(Clone, Copy, Debug)]
pub(super) struct About<'a> {
    pub(super) kind: MetricType,
    pub(super) help: &'a str,
    pub(super) unit: &'a str,
}

impl Requests {
    pub(crate) fn new(most: u64) -> Self {
        let mut requests = Self {
            most,
            request: Request::default(),
            places: HashMap::new(),
            counts: Counts::default(),
            bytes: 0,
            full: Vec::new(),
        };
        requests.begin();
        requests
    }

    /// Begins a message. The first symbol is empty.
    fn begin(&mut self) {
        self.places.clear();
        self.request = Request::default();
        (self.counts, self.bytes) = (Counts::default(), 0);
        self.place("");
    }

    fn place(&mut self, text: &str) -> u32 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.request.symbols.len() as u32;
        self.request.symbols.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        // Its field's number and its length take a few bytes.
        self.bytes += text.len() + 4;
        place
    }

    fn places_of<'a>(&mut self, labels: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<u32> {
        labels.flat_map(|(name, value)| [self.place(name), self.place(value)]).collect()
    }

    /// Adds a series: its labels sorted by name, its exemplars oldest first, each as its labels, value
    /// and time. `series` has its values.
    pub(super) fn add(
        &mut self,
        labels: &[(&str, &str)],
        about: About<'_>,
        exemplars: &[(&talea_page::Exemplar, i64)],
        mut series: TimeSeries,
    ) {
        series.labels_refs = self.places_of(labels.iter().copied());
        for (exemplar, timestamp) in exemplars {
            let mut labels: Vec<(&str, &str)> =
                exemplar.labels.iter().map(|it| (&*it.name, &*it.value)).collect();
            labels.sort_unstable();
            series.exemplars.push(Exemplar {
                labels_refs: self.places_of(labels.into_iter()),
                value: exemplar.value,
                timestamp: *timestamp,
            });
        }
        let (help_ref, unit_ref) = (self.place(about.help), self.place(about.unit));
        series.metadata = Some(Metadata { r#type: about.kind.into(), help_ref, unit_ref });
        self.counts += counts_of(&series);
        self.bytes += series.encoded_len() + 4;
        self.request.timeseries.push(series);
        if self.counts.values() >= self.most || self.bytes >= MOST_BYTES {
            self.end();
        }
    }

    fn end(&mut self) {
        if !self.request.timeseries.is_empty() {
            let body = compressed(&self.request.encode_to_vec());
            self.full.push(Record { counts: self.counts, body });
        }
        self.begin();
    }

    /// The requests that were filled, which are taken out.
    pub(crate) fn take(&mut self) -> Vec<Record> {
        self.end();
        std::mem::take(&mut self.full)
    }
}

fn counts_of(series: &TimeSeries) -> Counts {
    Counts {
        samples: series.samples.len() as u64,
        histograms: series.histograms.len() as u64,
        exemplars: series.exemplars.len() as u64,
    }
}

/// In snappy's block format.
fn compressed(message: &[u8]) -> Vec<u8> {
    let compressed = snap::raw::Encoder::new().compress_vec(message);
    compressed.expect("a message is shorter than the 4 GiB that snappy takes")
}

/// A request of version 2.0 as one of 1.0, without start timestamps and metadata. `None` if it is not such
/// a request.
pub(crate) fn downgraded(body: &[u8]) -> Option<Vec<u8>> {
    let message = snap::raw::Decoder::new().decompress_vec(body).ok()?;
    let Request { symbols, timeseries } = Request::decode(&*message).ok()?;
    let series = timeseries.into_iter().map(|series| downgraded_series(series, &symbols));
    let timeseries = series.collect::<Option<Vec<_>>>()?;
    Some(compressed(&v1::WriteRequest { timeseries }.encode_to_vec()))
}

fn downgraded_series(series: TimeSeries, symbols: &[String]) -> Option<v1::TimeSeries> {
    let TimeSeries { labels_refs, samples, mut histograms, exemplars, .. } = series;
    histograms.iter_mut().for_each(|histogram| histogram.start_timestamp = 0);
    let samples = samples.iter().map(|it| v1::Sample { value: it.value, timestamp: it.timestamp });
    let exemplars = exemplars.iter().map(|it| {
        let labels = labels_of(&it.labels_refs, symbols)?;
        Some(v1::Exemplar { labels, value: it.value, timestamp: it.timestamp })
    });
    Some(v1::TimeSeries {
        labels: labels_of(&labels_refs, symbols)?,
        samples: samples.collect(),
        exemplars: exemplars.collect::<Option<_>>()?,
        histograms,
    })
}

fn labels_of(places: &[u32], symbols: &[String]) -> Option<Vec<v1::Label>> {
    let text = |place: u32| symbols.get(place as usize).cloned();
    let pairs = places.chunks_exact(2);
    pairs.map(|pair| Some(v1::Label { name: text(pair[0])?, value: text(pair[1])? })).collect()
}
