//! The text of 100,000 counters with one dynamic label, from the registry to
//! the last byte.

use std::mem::take;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, ensure};
use bytes::Bytes;
use measured::text::BufferedTextEncoder;
use measured::{CounterVec, LabelGroup, MetricGroup};
use metrics_exporter_prometheus::PrometheusBuilder;
use paracord::ParaCord;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter as ClientCounter;
use prometheus_client::metrics::family::Family as ClientFamily;
use talea::{Config, Counter, Family, Labels, Opts, Registry};

use crate::randomness::Key;
use crate::work::{Group, Place, Setting, Subject, Work};

pub(super) const SERIES: usize = 100_000;

pub(super) const GROUP: Group = Group {
    name: "encode-100k",
    threads: &[1],
    subjects: &[
        Subject::new("talea", talea),
        Subject::new("measured", measured),
        Subject::new("prometheus", prometheus),
        Subject::new("prometheus-client", prometheus_client),
        Subject::new("metrics", metrics),
    ],
    place: Place::Apart,
    note: "ns: time for one text of all series. Buffers are used again where \
           a library lets its user do so.",
};

fn keys() -> impl Iterator<Item = Key> {
    (0..SERIES as u64).map(Key::of)
}

/// A registry that gives its text over and over, through a buffer.
struct Texts<S, B> {
    registry: S,
    buffer: Mutex<B>,
    write: fn(&S, &mut B),
    text: fn(&B) -> &[u8],
    /// How long the text is, time after time.
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

/// Writes the text once and looks whether all series are in it.
fn texts<S: Send + Sync + 'static, B: Default + Send + 'static>(
    registry: S,
    write: fn(&S, &mut B),
    text: fn(&B) -> &[u8],
) -> Result<Box<dyn Work>> {
    let mut buffer = B::default();
    write(&registry, &mut buffer);
    let first = std::str::from_utf8(text(&buffer))?;
    let samples = first.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
    ensure!(samples == SERIES, "{samples} samples in the text, {SERIES} were expected");
    let len = first.len();
    let buffer = Mutex::new(buffer);
    Ok(Box::new(Texts { registry, buffer, write, text, len, written: AtomicU64::new(0) }))
}

#[derive(Labels)]
struct By<'a> {
    user: &'a str,
}

pub(super) fn filled_talea() -> Result<Registry> {
    let registry = Registry::with_config(Config::with_len(128 << 20))?;
    let opts = Opts::new("users", "Users.").limit(SERIES as u64);
    let family: Family<By<'static>, Counter> = registry.register(opts)?;
    keys().for_each(|key| family.with(By { user: key.as_str() }).inc());
    Ok(registry)
}

fn talea(_: &Setting) -> Result<Box<dyn Work>> {
    texts(
        filled_talea()?,
        |registry, out: &mut String| {
            // The text before was sent by now.
            drop(take(out));
            *out = registry.snapshot().to_text();
        },
        |out| out.as_bytes(),
    )
}

#[derive(MetricGroup)]
#[metric(new())]
struct Measured {
    /// Users.
    #[metric(rename = "users_total")]
    users: CounterVec<BySet>,
}

#[derive(Clone, Copy, LabelGroup)]
#[label(set = BySet)]
struct MeasuredBy<'a> {
    #[label(dynamic_with = ParaCord, default)]
    user: &'a str,
}

/// measured's encoder, and the last text that it gave.
#[derive(Default)]
struct MeasuredText {
    encoder: BufferedTextEncoder,
    text: Bytes,
}

fn measured(_: &Setting) -> Result<Box<dyn Work>> {
    let group = Measured::new();
    keys().for_each(|key| group.users.inc(MeasuredBy { user: key.as_str() }));
    texts(
        group,
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

pub(super) fn filled_prometheus() -> Result<prometheus::Registry> {
    let registry = prometheus::Registry::new();
    let opts = prometheus::Opts::new("users_total", "Users.");
    let family = prometheus::IntCounterVec::new(opts, &["user"])?;
    registry.register(Box::new(family.clone()))?;
    keys().for_each(|key| family.with_label_values(&[key.as_str()]).inc());
    Ok(registry)
}

fn prometheus(_: &Setting) -> Result<Box<dyn Work>> {
    texts(
        filled_prometheus()?,
        |registry, out: &mut String| {
            out.clear();
            // An error leaves the text too short, which is found.
            let _ = prometheus::TextEncoder::new().encode_utf8(&registry.gather(), out);
        },
        |out| out.as_bytes(),
    )
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClientBy {
    user: String,
}

fn prometheus_client(_: &Setting) -> Result<Box<dyn Work>> {
    let family = ClientFamily::<ClientBy, ClientCounter>::default();
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register("users", "Users.", family.clone());
    keys().for_each(|key| {
        family.get_or_create(&ClientBy { user: key.as_str().to_owned() }).inc();
    });
    texts(
        registry,
        |registry, out: &mut String| {
            out.clear();
            // An error leaves the text too short, which is found.
            let _ = prometheus_client::encoding::text::encode(out, registry);
        },
        |out| out.as_bytes(),
    )
}

fn metrics(_: &Setting) -> Result<Box<dyn Work>> {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        metrics::describe_counter!("users_total", "Users.");
        keys().for_each(|key| {
            metrics::counter!("users_total", "user" => key.as_str().to_owned()).increment(1);
        });
    });
    texts(
        recorder.handle(),
        |handle, out: &mut String| {
            drop(take(out));
            *out = handle.render();
        },
        |out| out.as_bytes(),
    )
}
