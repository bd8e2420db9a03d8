//! The agent's answers, and the resources of its process.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use talea_parse::{Syntax, families};

use crate::support::LONGEST;
use crate::support::test_server::process_memory;
use crate::support::wait_for;

/// An answer: its status, and its head and body. That of a scrape may break off.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

/// Asks over a connection of its own, and panics if nothing is answered.
pub(crate) fn ask(address: &str, path: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONGEST)).unwrap();
    let accept = "application/openmetrics-text; version=1.0.0";
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n").unwrap();
    let mut all = Vec::new();
    let read = stream.read_to_end(&mut all);
    let text = String::from_utf8(all).unwrap();
    let status = text.split(' ').nth(1).unwrap_or_else(|| panic!("{path}: no answer, {read:?}"));
    Answer { status: status.parse().unwrap(), text }
}

/// A page, or nothing if the agent had no room for the scrape, or it broke off.
pub(crate) fn scrape(address: &str) -> Option<Page> {
    let answer = ask(address, "/metrics");
    if answer.status == 503 {
        assert!(answer.text.to_lowercase().contains("\r\nretry-after: "), "{}", answer.text);
        return None;
    }
    assert_eq!(answer.status, 200, "{}", answer.text);
    let (_, body) = answer.text.split_once("\r\n\r\n")?;
    body.ends_with("# EOF\n").then(|| Page::of(body))
}

pub(crate) struct Page {
    /// Of each sample in each region, the sum of all series.
    sums: BTreeMap<(String, String), f64>,
    helps: BTreeMap<String, String>,
    pub(crate) text: String,
}

impl Page {
    fn of(text: &str) -> Self {
        let (mut sums, mut helps) = (BTreeMap::new(), BTreeMap::new());
        let all = families(text, Syntax::OpenMetrics);
        for family in all.unwrap_or_else(|error| panic!("{error}\n{text}")) {
            helps.insert(family.name.to_string(), family.help.unwrap_or_default().to_string());
            for sample in family.samples {
                let region = sample.labels.get("region").unwrap_or_default().to_string();
                *sums.entry((sample.name.to_string(), region)).or_default() += sample.value;
            }
        }
        Self { sums, helps, text: text.to_owned() }
    }

    /// The sum of a sample's series in a region.
    pub(crate) fn sum(&self, sample: &str, region: &str) -> Option<f64> {
        self.sums.get(&(sample.to_owned(), region.to_owned())).copied()
    }

    /// How often something was counted in a region.
    pub(crate) fn count(&self, sample: &str, region: &str) -> u64 {
        let sum = self.sum(&format!("{region}_{sample}"), region);
        sum.unwrap_or_else(|| panic!("{region} has no {sample}:\n{}", self.text)) as u64
    }

    pub(crate) fn help(&self, family: &str) -> &str {
        self.helps.get(family).map_or("", String::as_str)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessUsage {
    pub(crate) memory: u64,
    /// Descriptors of files in a folder.
    pub(crate) files: usize,
    pub(crate) others: usize,
}

impl ProcessUsage {
    pub(crate) fn of(pid: u32, folder: &Path) -> Self {
        let memory = process_memory(&pid.to_string(), "VmRSS:");
        let links = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        // It may be closed meanwhile.
        let links = links.filter_map(|link| fs::read_link(link.ok()?.path()).ok());
        let (files, others): (Vec<_>, Vec<_>) = links.partition(|link| link.starts_with(folder));
        Self { memory, files: files.len(), others: others.len() }
    }

    /// Its resources once they are as expected.
    pub(crate) fn settled(pid: u32, folder: &Path, is: impl Fn(&Self) -> bool) -> Self {
        wait_for(|| {
            let now = Self::of(pid, folder);
            if is(&now) { Ok(now) } else { Err(format!("it goes on holding {now:?}")) }
        })
    }
}
