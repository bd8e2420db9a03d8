//! The file that `talea load --samples` writes, of a scenario of one step, `hello`, that went
//! well.

use std::path::Path;

/// A request in a sample file, in seconds.
pub(crate) struct Sample {
    pub(crate) intended: f64,
    pub(crate) started: f64,
    pub(crate) took: f64,
    /// From when it was intended to its end.
    pub(crate) response: f64,
}

pub(crate) fn read(path: &Path) -> Vec<Sample> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let header =
        "round,client,step,intended_us,started_us,took_us,status,failure,response_us,at_least";
    assert_eq!(lines.next(), Some(header));
    lines
        .map(|line: &str| {
            let fields: Vec<&str> = line.split(',').collect();
            assert_eq!((fields[0], fields[2], fields[6], fields[7]), ("1", "hello", "200", ""));
            assert_eq!(fields[9], "false");
            let seconds = |n: usize| fields[n].parse::<f64>().unwrap() / 1e6;
            Sample {
                intended: seconds(3),
                started: seconds(4),
                took: seconds(5),
                response: seconds(8),
            }
        })
        .collect()
}
