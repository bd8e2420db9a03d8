//! Feeds: rows of a file, from which clients take values.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::captured::CapturedValue;

/// The rows of a file.
#[derive(Clone, Debug)]
pub struct Feed {
    /// Its name, which stands before its columns: `{users.name}`.
    pub name: String,
    pub(crate) columns: Vec<String>,
    /// The values of each row, by column; none where a row of JSON lacks it.
    pub(crate) rows: Vec<Vec<Option<CapturedValue>>>,
    pub(crate) order: Order,
    pub(crate) each: Each,
}

/// The order in which rows are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Order {
    /// One after the other, and from the first one again.
    #[default]
    Cycle,
    /// One after the other; no client begins once there are no more.
    Once,
    /// At random, with repeats.
    Random,
}

/// How long a client keeps a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Each {
    /// Each run of the scenario has another one.
    #[default]
    Iteration,
    /// A client keeps its row.
    Client,
}

/// How many rows of each feed were taken. All clients of a load share it, so that no two have the same row at a time,
/// unless there are fewer rows than clients.
#[derive(Debug)]
pub struct Cursors {
    taken: Vec<AtomicU64>,
    shard: Shard,
}

/// A part of a load, one of several of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// From 0.
    pub number: u64,
    /// How many there are.
    pub of: u64,
}

impl Shard {
    /// The whole load.
    pub const ALL: Self = Self { number: 0, of: 1 };

    /// The number of one of its clients among those of all shards.
    pub(crate) fn client(self, number: u64) -> u64 {
        number.saturating_mul(self.of).saturating_add(self.number)
    }

    /// The part of a number that is this shard's; all of them add up to the number.
    pub fn part(self, all: u64) -> u64 {
        all / self.of + u64::from(self.number < all % self.of)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shard {}/{}", self.number + 1, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const INDEX: &str = "JOB_COMPLETION_INDEX";
        let expected = || {
            format!(
                "found the shard {text:?}, expected one such as 3/8, the third of eight; or index/8, where ${INDEX} has \
                 its number from 0 on, as in an indexed job of Kubernetes"
            )
        };
        let (number, of) = text.split_once('/').ok_or_else(expected)?;
        let of: u64 = of.parse().map_err(|_| expected())?;
        let number: Option<u64> = match number {
            "index" => std::env::var(INDEX).ok().and_then(|index| index.parse().ok()),
            number => number.parse().ok().and_then(|number: u64| number.checked_sub(1)),
        };
        let number = number.filter(|number| *number < of).ok_or_else(expected)?;
        Ok(Self { number, of })
    }
}

impl Cursors {
    pub(crate) fn new(feeds: &[Feed], shard: Shard) -> Self {
        Self { taken: feeds.iter().map(|_| AtomicU64::new(0)).collect(), shard }
    }

    /// The next row of a feed; none if there are no more.
    pub(crate) fn next(&self, feed: usize, of: &Feed, random: &mut fastrand::Rng) -> Option<usize> {
        let rows = of.rows.len() as u64;
        if of.order == Order::Random {
            return Some(random.u64(0..rows) as usize);
        }
        let nth = self.taken[feed].fetch_add(1, Relaxed);
        let nth = nth.saturating_mul(self.shard.of).saturating_add(self.shard.number);
        match of.order {
            Order::Once => (nth < rows).then_some(nth as usize),
            Order::Cycle | Order::Random => Some((nth % rows) as usize),
        }
    }
}

impl Feed {
    /// Reads a file of CSV, whose first row names the columns, or of JSON lines (`.jsonl`, `.ndjson`), each an object.
    pub(super) fn read(name: &str, path: &Path, order: Order, each: Each) -> Result<Self, String> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("the feed {name}: {shown} cannot be read: {error}"))?;
        let is_json = path.extension().is_some_and(|it| it == "jsonl" || it == "ndjson");
        let read = if is_json { json_lines(&text) } else { csv_rows(&text) };
        let (columns, rows) = read.map_err(|error| format!("the feed {name}: {shown}{error}"))?;
        if rows.is_empty() {
            return Err(format!("the feed {name}: {shown} has no row, expected at least one"));
        }
        Ok(Self { name: name.to_owned(), columns, rows, order, each })
    }
}

type Rows = (Vec<String>, Vec<Vec<Option<CapturedValue>>>);

fn csv_rows(text: &str) -> Result<Rows, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let columns = reader.headers().map_err(|error| format!(": {error}"))?;
    let columns: Vec<String> = columns.iter().map(|column| column.trim().to_owned()).collect();
    if let Some(twice) = columns.iter().enumerate().find(|(n, one)| columns[..*n].contains(one)) {
        return Err(format!(":1: found the column {:?} twice", twice.1));
    }
    let rows = reader.records().map(|record| {
        let record = record.map_err(|error| format!(": {error}"))?;
        Ok(record.iter().map(|cell| Some(CapturedValue::text(cell))).collect())
    });
    Ok((columns, rows.collect::<Result<_, String>>()?))
}

fn json_lines(text: &str) -> Result<Rows, String> {
    let mut objects = Vec::new();
    for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let object: BTreeMap<String, Json> = serde_json::from_str(line)
            .map_err(|error| format!(":{}: {error}; expected an object of JSON", n + 1))?;
        objects.push(object);
    }
    let columns: std::collections::BTreeSet<&String> =
        objects.iter().flat_map(|it| it.keys()).collect();
    let columns: Vec<String> = columns.into_iter().cloned().collect();
    let rows = objects.iter().map(|object| {
        let value = |column| object.get(column).and_then(CapturedValue::of);
        columns.iter().map(value).collect()
    });
    let rows = rows.collect();
    Ok((columns, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(text: &str, file: &str, order: Order) -> Result<Feed, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        std::fs::write(&path, text).unwrap();
        Feed::read("users", &path, order, Each::Iteration)
    }

    fn taken(feed: &Feed, shard: Shard) -> Vec<Option<usize>> {
        let cursors = Cursors::new(std::slice::from_ref(feed), shard);
        let mut random = fastrand::Rng::with_seed(1);
        (0..5).map(|_| cursors.next(0, feed, &mut random)).collect()
    }

    #[test]
    fn rows_cycle_or_are_taken_once_and_shards_share_them() {
        let cycle = feed("name,id\nann,1\n\"b,c\",2\ndan,3\n", "a.csv", Order::Cycle).unwrap();
        assert_eq!(cycle.columns, ["name", "id"]);
        assert_eq!(cycle.rows[1][0], Some(CapturedValue::text("b,c")));
        let shard = |number, of| Shard { number, of };
        assert_eq!(taken(&cycle, Shard::ALL), [0, 1, 2, 0, 1].map(Some));
        assert_eq!(taken(&cycle, shard(1, 2)), [1, 0, 2, 1, 0].map(Some));
        let once = Feed { order: Order::Once, ..cycle };
        assert_eq!(taken(&once, Shard::ALL), [Some(0), Some(1), Some(2), None, None]);
        assert_eq!(taken(&once, shard(0, 2)), [Some(0), Some(2), None, None, None]);
        assert_eq!(taken(&once, shard(1, 2)), [Some(1), None, None, None, None]);
        let random = taken(&Feed { order: Order::Random, ..once }, Shard::ALL);
        assert!(random.iter().all(|row| row.is_some_and(|row| row < 3)));
    }

    #[test]
    fn lines_of_json_keep_the_kinds_of_their_values() {
        let feed =
            feed("{\"id\":7,\"name\":\"a\"}\n\n{\"id\":8}\n", "a.jsonl", Order::Cycle).unwrap();
        assert_eq!(feed.columns, ["id", "name"]);
        assert_eq!(feed.rows[0], [Some(CapturedValue::number(7)), Some(CapturedValue::text("a"))]);
        assert_eq!(feed.rows[1], [Some(CapturedValue::number(8)), None]);
    }

    #[test]
    fn a_file_that_is_no_feed_is_named_with_its_line() {
        for (text, file, part) in [
            ("a\n", "a.csv", "has no row"),
            ("a,a\n1,2\n", "a.csv", ":1: found the column \"a\" twice"),
            ("a,b\n1\n", "a.csv", "line: 2"),
            ("{}\n[]\n", "a.jsonl", ":2: "),
            ("", "a.ndjson", "has no row"),
        ] {
            let error = feed(text, file, Order::Cycle).unwrap_err();
            assert!(error.contains("the feed users: ") && error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_shard_is_counted_from_one() {
        assert_eq!("3/8".parse(), Ok(Shard { number: 2, of: 8 }));
        assert_eq!("1/1".parse(), Ok(Shard::ALL));
        for text in ["", "3", "0/8", "9/8", "a/8", "1/0", "index/8"] {
            assert!(
                text.parse::<Shard>().unwrap_err().contains("expected one such as 3/8"),
                "{text}"
            );
        }
    }

    #[test]
    fn the_parts_of_all_shards_are_the_whole() {
        for (all, of) in [(0, 1), (1, 3), (8, 3), (9, 3), (1_000_003, 7)] {
            let parts = (0..of).map(|number| Shard { number, of }.part(all));
            assert_eq!(parts.sum::<u64>(), all);
        }
    }
}
