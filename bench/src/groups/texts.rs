//! The text of all metrics of a registry, from the registry to the last byte, repeatedly: as each
//! library writes it.

use std::mem::take;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, ensure};
use bytes::Bytes;
use measured::MetricGroup;
use measured::text::BufferedTextEncoder;
use metrics_exporter_prometheus::PrometheusHandle;
use prometheus_client::registry::Registry as ClientRegistry;
use talea::{Registry, Scraper};

use crate::work::Work;

pub(super) const NOTE: &str = "ns: time for one text of all series. Buffers are reused if a \
    library lets its user do so.";

pub(super) fn of_talea(registry: Registry, series: usize) -> Result<Box<dyn Work>> {
    texts(
        registry,
        series,
        |registry, scraper: &mut Option<Scraper>| {
            scraper.get_or_insert_with(|| registry.scraper()).scrape();
        },
        |scraper| scraper.as_ref().map_or(&[], |scraper| scraper.scraped()),
    )
}

/// measured's encoder, and the last text that it gave.
#[derive(Default)]
struct MeasuredText {
    encoder: BufferedTextEncoder,
    text: Bytes,
}

pub(super) fn of_measured<G>(group: G, series: usize) -> Result<Box<dyn Work>>
where
    G: MetricGroup<BufferedTextEncoder> + Send + Sync + 'static,
{
    texts(
        group,
        series,
        |group, out: &mut MeasuredText| {
            // Only then can the encoder use its buffer again.
            drop(take(&mut out.text));
            // This cannot fail.
            let _ = group.collect_group_into(&mut out.encoder);
            out.text = out.encoder.finish();
        },
        |out| &out.text,
    )
}

pub(super) fn of_prometheus(
    registry: prometheus::Registry,
    series: usize,
) -> Result<Box<dyn Work>> {
    texts(
        registry,
        series,
        |registry, out: &mut String| {
            out.clear();
            // An error leaves the text too short, which the check finds.
            let _ = prometheus::TextEncoder::new().encode_utf8(&registry.gather(), out);
        },
        |out| out.as_bytes(),
    )
}

pub(super) fn of_prometheus_client(
    registry: ClientRegistry,
    series: usize,
) -> Result<Box<dyn Work>> {
    texts(
        registry,
        series,
        |registry, out: &mut String| {
            out.clear();
            // An error leaves the text too short, which the check finds.
            let _ = prometheus_client::encoding::text::encode(out, registry);
        },
        |out| out.as_bytes(),
    )
}

pub(super) fn of_metrics(handle: PrometheusHandle, series: usize) -> Result<Box<dyn Work>> {
    texts(
        handle,
        series,
        |handle, out: &mut String| {
            drop(take(out));
            *out = handle.render();
        },
        |out| out.as_bytes(),
    )
}

/// A registry that writes its text repeatedly into a buffer.
struct Texts<S, B> {
    registry: S,
    buffer: Mutex<B>,
    write: fn(&S, &mut B),
    text: fn(&B) -> &[u8],
    len: usize,
    written: AtomicU64,
}

impl<S: Send + Sync, B: Send> Work for Texts<S, B> {
    fn run(&self, _: usize, n: u64) {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..n {
            (self.write)(&self.registry, &mut buffer);
            if (self.text)(&buffer).len() == self.len {
                self.written.fetch_add(1, Relaxed);
            }
        }
    }

    fn done(&self) -> Result<u64> {
        Ok(self.written.load(Relaxed))
    }
}

/// Writes the text once and checks the number of its samples.
fn texts<S: Send + Sync + 'static, B: Default + Send + 'static>(
    registry: S,
    series: usize,
    write: fn(&S, &mut B),
    text: fn(&B) -> &[u8],
) -> Result<Box<dyn Work>> {
    let mut buffer = B::default();
    write(&registry, &mut buffer);
    let first = std::str::from_utf8(text(&buffer))?;
    let samples = first.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
    ensure!(samples == series, "{samples} samples in the text, {series} were expected");
    let len = first.len();
    let buffer = Mutex::new(buffer);
    Ok(Box::new(Texts { registry, buffer, write, text, len, written: AtomicU64::new(0) }))
}
