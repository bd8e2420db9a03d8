//! Reading a text in the Prometheus text format: each sample with its name, labels and value.

use std::hint::black_box;

use anyhow::{Result, ensure};
use prometheus_parse::Scrape;
use talea::Registry;
use talea_parse::{Line, Reader, Syntax};

use super::{encode, encode_histograms};
use crate::work::{Group, Place, Subject, Work, repeated};

const NOTE: &str = "ns: time for one text; parse has 100,000 samples, parse-histograms 17,000. \
    Talea gives each sample and each label once, borrowed from the text.";

/// The text of 100,000 counters, as `encode-100k` has it.
pub(super) const GROUP: Group = Group {
    name: "parse",
    threads: &[1],
    subjects: &[
        Subject::new("talea", |_| talea(counters()?)),
        Subject::new("prometheus-parse", |_| prometheus_parse(counters()?)),
    ],
    place: Place::Apart,
    note: NOTE,
};

/// The text of 1,000 histograms, as `encode-histograms` has it.
pub(super) const HISTOGRAMS: Group = Group {
    name: "parse-histograms",
    threads: &[1],
    subjects: &[
        Subject::new("talea", |_| talea(histograms()?)),
        Subject::new("prometheus-parse", |_| prometheus_parse(histograms()?)),
    ],
    place: Place::Apart,
    note: NOTE,
};

struct Text {
    text: String,
    samples: usize,
    /// The number of samples by prometheus-parse, which makes one of a histogram.
    shown: usize,
}

impl Text {
    fn of(registry: &Registry, samples: usize, shown: usize) -> Result<Self> {
        let text = registry.snapshot().to_text();
        let found = text.lines().filter(|line| !line.starts_with('#')).count();
        ensure!(found == samples, "{found} samples in the text, {samples} were expected");
        Ok(Self { text, samples, shown })
    }
}

fn counters() -> Result<Text> {
    Text::of(&encode::filled_talea::<{ encode::SERIES }>()?, encode::SERIES, encode::SERIES)
}

fn histograms() -> Result<Text> {
    // prometheus-parse has the sum and the count of a histogram apart.
    let shown = 3 * encode_histograms::SERIES;
    Text::of(&encode_histograms::filled_talea()?, encode_histograms::SAMPLES, shown)
}

fn talea(text: Text) -> Result<Box<dyn Work>> {
    ensure!(is_read_by_talea(&text), "the text is not read whole");
    repeated(text, |text| is_read_by_talea(text).into())
}

fn is_read_by_talea(text: &Text) -> bool {
    let mut samples = 0;
    for line in Reader::new(&text.text, Syntax::Text) {
        if let Ok(Line::Sample(sample)) = line {
            sample.labels.iter().for_each(|label| {
                black_box(label);
            });
            black_box((sample.name, sample.value));
            samples += 1;
        }
    }
    samples == text.samples
}

fn prometheus_parse(text: Text) -> Result<Box<dyn Work>> {
    ensure!(is_read_by_prometheus_parse(&text), "the text is not read whole");
    repeated(text, |text| is_read_by_prometheus_parse(text).into())
}

fn is_read_by_prometheus_parse(text: &Text) -> bool {
    let scrape = Scrape::parse(text.text.lines().map(|line| Ok(line.to_owned())));
    black_box(scrape).is_ok_and(|scrape| scrape.samples.len() == text.shown)
}
