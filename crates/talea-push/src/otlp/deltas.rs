//! Differences of cumulative values.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use prost::Message;

use super::message::{
    Buckets, ExponentialHistogram, ExponentialHistogramDataPoint, Histogram, HistogramDataPoint,
    KeyValue, Metric, NumberDataPoint, ScopeMetrics, Sum,
};

/// `AGGREGATION_TEMPORALITY_DELTA`.
const DELTA: i32 = 1;

const FILE: &str = "deltas";
/// The file's checksum, of all behind it; then a time, and the values.
const CHECKSUM: usize = 4;
const TIME: usize = 8;

/// The cumulative values of each series when it was collected last.
#[derive(Debug)]
pub(crate) struct Deltas {
    last: HashMap<Key, Point>,
    /// The time of the collection before, or 0.
    before: u64,
    /// How long a series is remembered that is not there. If it comes back later, all of it is new.
    longest: u64,
    file: Option<PathBuf>,
}

/// The name of a metric, and the attributes of a series.
type Key = (String, Vec<KeyValue>);

#[derive(Clone, Debug, PartialEq)]
enum Point {
    Number(NumberDataPoint),
    Histogram(HistogramDataPoint),
    Exponential(ExponentialHistogramDataPoint),
}

impl Deltas {
    /// Those that a file in a folder holds, if there is one. Times are in nanoseconds. An error says why the file cannot
    /// be used; then there are none.
    pub(crate) fn open(folder: Option<&Path>, longest: u64) -> (Self, Option<io::Error>) {
        let file = folder.map(|folder| folder.join(FILE));
        let mut deltas = Self { last: HashMap::new(), before: 0, longest, file };
        let error = match deltas.file.as_deref().map(read) {
            Some(Ok((time, metrics))) => {
                deltas.before = time;
                metrics.into_iter().for_each(|metric| deltas.remember(metric));
                None
            }
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Some(error),
            _ => None,
        };
        (deltas, error)
    }

    /// Whether there is nothing yet that a difference could be made from.
    pub(crate) fn is_empty(&self) -> bool {
        self.before == 0
    }

    /// Takes from the values of a metric what they had at the collection before.
    pub(crate) fn apply(&mut self, metric: &mut Metric) {
        let Metric { name, sum, histogram, exponential_histogram, .. } = metric;
        for Sum { data_points, aggregation_temporality, .. } in sum.iter_mut() {
            *aggregation_temporality = DELTA;
            data_points.iter_mut().for_each(|point| self.apply_to(name, point));
        }
        for Histogram { data_points, aggregation_temporality } in histogram.iter_mut() {
            *aggregation_temporality = DELTA;
            data_points.iter_mut().for_each(|point| self.apply_to(name, point));
        }
        for ExponentialHistogram { data_points, aggregation_temporality } in
            exponential_histogram.iter_mut()
        {
            *aggregation_temporality = DELTA;
            data_points.iter_mut().for_each(|point| self.apply_to(name, point));
        }
    }

    fn apply_to<P: Cumulative>(&mut self, name: &str, point: &mut P) {
        let now = point.clone().without_exemplars();
        let last =
            self.last.insert((name.to_owned(), point.attributes().to_vec()), now.into_point());
        let last = last.and_then(P::of_point);
        // What came since that series began, unless it had a value before: periods do not overlap.
        let begins = last.as_ref().map_or(self.before, P::time);
        let is_same = last.as_ref().is_some_and(|last| last.start() == point.start());
        let is_difference = is_same && last.is_some_and(|last| point.subtract(&last));
        point.set_start(if is_difference { begins } else { begins.max(point.start()) });
    }

    /// Ends a collection.
    pub(crate) fn end(&mut self, time: u64) {
        self.before = time;
        let oldest = time.saturating_sub(self.longest);
        self.last.retain(|_, point| point.time() >= oldest);
    }

    /// Writes the values to the file, if there is one: it is there as a whole, or as it was.
    pub(crate) fn save(&self) -> io::Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        let metrics = self.last.iter().map(|((name, _), point)| point.clone().into_metric(name));
        let message = ScopeMetrics { scope: None, metrics: metrics.collect() }.encode_to_vec();
        let content = [&self.before.to_le_bytes()[..], &message].concat();
        let new = path.with_extension("new");
        let mut options = File::options();
        options.create(true).truncate(true).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&new)?;
        file.write_all(&crc32fast::hash(&content).to_le_bytes())?;
        file.write_all(&content)?;
        file.sync_all()?;
        fs::rename(&new, path)
    }

    fn remember(&mut self, metric: Metric) {
        let Metric { name, sum, histogram, exponential_histogram, .. } = metric;
        let numbers = sum.into_iter().flat_map(|it| it.data_points).map(Point::Number);
        let classic = histogram.into_iter().flat_map(|it| it.data_points).map(Point::Histogram);
        let native = exponential_histogram.into_iter().flat_map(|it| it.data_points);
        for point in numbers.chain(classic).chain(native.map(Point::Exponential)) {
            self.last.insert((name.clone(), point.attributes().to_vec()), point);
        }
    }
}

fn read(path: &Path) -> io::Result<(u64, Vec<Metric>)> {
    let bytes = fs::read(path)?;
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "its checksum does not fit it");
    let (checksum, content) = bytes.split_first_chunk::<CHECKSUM>().ok_or_else(damaged)?;
    if *checksum != crc32fast::hash(content).to_le_bytes() {
        return Err(damaged());
    }
    let (time, message) = content.split_first_chunk::<TIME>().ok_or_else(damaged)?;
    let message = ScopeMetrics::decode(message).map_err(|_| damaged())?;
    Ok((u64::from_le_bytes(*time), message.metrics))
}

/// A data point that holds all since its start.
trait Cumulative: Clone {
    fn attributes(&self) -> &[KeyValue];
    fn start(&self) -> u64;
    fn set_start(&mut self, start: u64);
    fn time(&self) -> u64;
    fn without_exemplars(self) -> Self;
    fn into_point(self) -> Point;
    fn of_point(point: Point) -> Option<Self>;
    /// Takes an earlier value from this one. Leaves it as it is, and returns `false`, if it cannot be: it was reset
    /// meanwhile, or has other buckets.
    fn subtract(&mut self, last: &Self) -> bool;
}

macro_rules! cumulative {
    ($type:ty, $variant:ident, $subtract:expr) => {
        impl Cumulative for $type {
            fn attributes(&self) -> &[KeyValue] {
                &self.attributes
            }

            fn start(&self) -> u64 {
                self.start_time_unix_nano
            }

            fn set_start(&mut self, start: u64) {
                self.start_time_unix_nano = start;
            }

            fn time(&self) -> u64 {
                self.time_unix_nano
            }

            fn without_exemplars(self) -> Self {
                Self { exemplars: Vec::new(), ..self }
            }

            fn into_point(self) -> Point {
                Point::$variant(self)
            }

            fn of_point(point: Point) -> Option<Self> {
                match point {
                    Point::$variant(point) => Some(point),
                    _ => None,
                }
            }

            fn subtract(&mut self, last: &Self) -> bool {
                $subtract(self, last).is_some()
            }
        }
    };
}

cumulative!(NumberDataPoint, Number, subtract_number);
cumulative!(HistogramDataPoint, Histogram, subtract_histogram);
cumulative!(ExponentialHistogramDataPoint, Exponential, subtract_exponential);

fn subtract_number(now: &mut NumberDataPoint, last: &NumberDataPoint) -> Option<()> {
    let difference = now.as_double? - last.as_double?;
    // Also if it is not a number.
    let is_reset = difference.is_nan() || difference < 0.0;
    now.as_double = Some((!is_reset).then_some(difference)?);
    Some(())
}

fn subtract_histogram(now: &mut HistogramDataPoint, last: &HistogramDataPoint) -> Option<()> {
    let count = now.count.checked_sub(last.count)?;
    if now.explicit_bounds != last.explicit_bounds {
        return None;
    }
    let buckets = now.bucket_counts.iter().zip(&last.bucket_counts);
    let buckets = buckets.map(|(now, last)| now.checked_sub(*last));
    now.bucket_counts = buckets.collect::<Option<_>>()?;
    (now.count, now.sum) = (count, difference(now.sum, last.sum));
    Some(())
}

fn subtract_exponential(
    now: &mut ExponentialHistogramDataPoint,
    last: &ExponentialHistogramDataPoint,
) -> Option<()> {
    let count = now.count.checked_sub(last.count)?;
    let zero_count = now.zero_count.checked_sub(last.zero_count)?;
    let scale = now.scale.min(last.scale);
    let [of_now, of_last] = [&*now, last].map(|it| it.scale.abs_diff(scale));
    let positive = subtract_buckets(&now.positive, of_now, &last.positive, of_last)?;
    let negative = subtract_buckets(&now.negative, of_now, &last.negative, of_last)?;
    *now = ExponentialHistogramDataPoint {
        count,
        zero_count,
        scale,
        positive,
        negative,
        sum: difference(now.sum, last.sum),
        ..std::mem::take(now)
    };
    Some(())
}

fn difference(now: Option<f64>, last: Option<f64>) -> Option<f64> {
    Some(now? - last?)
}

/// The difference of buckets after either were made coarser by some steps, without empty buckets at its ends; `None` if a
/// bucket holds less than before.
fn subtract_buckets(
    now: &Option<Buckets>,
    now_steps: u32,
    last: &Option<Buckets>,
    last_steps: u32,
) -> Option<Option<Buckets>> {
    let mut buckets = coarser(now, now_steps);
    for (index, count) in coarser(last, last_steps) {
        let here = buckets.binary_search_by_key(&index, |bucket| bucket.0);
        match here {
            Ok(at) => buckets[at].1 = buckets[at].1.checked_sub(count)?,
            Err(_) if count == 0 => {}
            Err(_) => return None,
        }
    }
    buckets.retain(|(_, count)| *count > 0);
    let (Some((first, _)), Some((end, _))) = (buckets.first(), buckets.last()) else {
        return Some(None);
    };
    let mut bucket_counts = vec![0; (i64::from(*end) - i64::from(*first) + 1) as usize];
    for (index, count) in &buckets {
        bucket_counts[(i64::from(*index) - i64::from(*first)) as usize] = *count;
    }
    Some(Some(Buckets { offset: *first, bucket_counts }))
}

/// Buckets by their numbers, each step of which joins them by twos.
fn coarser(buckets: &Option<Buckets>, steps: u32) -> Vec<(i32, u64)> {
    let mut joined: Vec<(i32, u64)> = Vec::new();
    if let Some(Buckets { offset, bucket_counts }) = buckets {
        for (n, count) in bucket_counts.iter().enumerate() {
            let index = (i64::from(*offset) + n as i64) >> steps.min(63);
            // It began as such a number.
            let index = index as i32;
            match joined.last_mut() {
                Some(last) if last.0 == index => last.1 += count,
                _ => joined.push((index, *count)),
            }
        }
    }
    joined
}

impl Point {
    fn time(&self) -> u64 {
        match self {
            Self::Number(point) => point.time(),
            Self::Histogram(point) => point.time(),
            Self::Exponential(point) => point.time(),
        }
    }

    fn attributes(&self) -> &[KeyValue] {
        match self {
            Self::Number(point) => point.attributes(),
            Self::Histogram(point) => point.attributes(),
            Self::Exponential(point) => point.attributes(),
        }
    }

    fn into_metric(self, name: &str) -> Metric {
        let mut metric = Metric { name: name.to_owned(), ..Metric::default() };
        match self {
            Self::Number(point) => metric.sum.get_or_insert_default().data_points.push(point),
            Self::Histogram(point) => {
                metric.histogram.get_or_insert_default().data_points.push(point)
            }
            Self::Exponential(point) => {
                metric.exponential_histogram.get_or_insert_default().data_points.push(point);
            }
        }
        metric
    }
}
