//! Parts of pages as services have them, for tests.

use std::fmt::{Display, Write};

use talea_page::Family;

/// A gauge, with the labels and the value of each series.
pub fn gauge(name: &str, series: &[(&str, impl Display)]) -> String {
    family("gauge", name, series)
}

pub fn counter(name: &str, series: &[(&str, impl Display)]) -> String {
    family("counter", name, series)
}

pub fn family(kind: &str, name: &str, series: &[(&str, impl Display)]) -> String {
    let mut page = format!("# TYPE {name} {kind}\n");
    for (labels, value) in series {
        let _ = writeln!(page, "{name}{{{labels}}} {value}");
    }
    page
}

pub fn requests(series: &[(&str, u64)]) -> String {
    histogram("http_request_duration_seconds", series)
}

/// A histogram, with the labels of each series and how often it has the value 0.25.
pub fn histogram(name: &str, series: &[(&str, u64)]) -> String {
    let mut page = format!("# TYPE {name} histogram\n");
    for (labels, count) in series {
        for bound in ["0.25", "+Inf"] {
            let _ = writeln!(page, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}");
        }
        let _ = writeln!(page, "{name}_sum{{{labels}}} {count}\n{name}_count{{{labels}}} {count}");
    }
    page
}

pub fn read(page: &str) -> Vec<Family> {
    talea_parse::page(page.as_bytes()).unwrap()
}
