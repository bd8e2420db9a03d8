//! Reading a text in the Prometheus text format: each sample with its name, labels and value.

use std::hint::black_box;

use anyhow::{Result, ensure};
use prometheus_parse::Scrape;
use talea_parse::{Line, Reader, Syntax};

use super::encode::{SERIES, filled_talea};
use crate::work::{Group, Place, Subject, Work, repeated};

/// The text of 100,000 counters, as `encode-100k` has it.
pub(super) const GROUP: Group = Group {
    name: "parse",
    threads: &[1],
    subjects: &[
        Subject::new("talea", |_| parsed(talea)),
        Subject::new("prometheus-parse", |_| parsed(prometheus_parse)),
    ],
    place: Place::Apart,
    note: "ns: time for one text of 100,000 samples. Talea gives each sample and each label once, \
           borrowed from the text.",
};

/// Has the text read by a function that returns the number of its samples.
fn parsed(samples: fn(&str) -> usize) -> Result<Box<dyn Work>> {
    let text = filled_talea::<SERIES>()?.snapshot().to_text();
    let found = samples(&text);
    ensure!(found == SERIES, "{found} samples were read, {SERIES} were expected");
    repeated((text, samples), |(text, samples)| (samples(text) == SERIES).into())
}

fn talea(text: &str) -> usize {
    let mut samples = 0;
    for line in Reader::new(text, Syntax::Text) {
        if let Ok(Line::Sample(sample)) = line {
            sample.labels.iter().for_each(|label| {
                black_box(label);
            });
            black_box((sample.name, sample.value));
            samples += 1;
        }
    }
    samples
}

fn prometheus_parse(text: &str) -> usize {
    let scrape = Scrape::parse(text.lines().map(|line| Ok(line.to_owned())));
    black_box(scrape).map_or(0, |scrape| scrape.samples.len())
}
