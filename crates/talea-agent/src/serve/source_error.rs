//! Why a region or a directory cannot be read, and a log of that which limits repetition.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use talea::{Error, OpenError};

use crate::descriptors::RAISE_LIMIT;
use crate::region_place::region_reason;
use talea_view::printable;
use talea_view::screen::note;

/// Why a region or a directory cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceError {
    pub(super) reason: String,
    /// Whether the system has no descriptor or no memory left for it. It may have some at any time,
    /// and none again.
    pub(super) is_shortage: bool,
}

impl SourceError {
    /// Of a region that waits for one of the descriptors that regions may have.
    pub(super) fn waits() -> Self {
        Self { reason: format!("it waits for a file descriptor; {RAISE_LIMIT}"), is_shortage: true }
    }
}

impl From<&io::Error> for SourceError {
    fn from(error: &io::Error) -> Self {
        Self { reason: error.to_string(), is_shortage: is_shortage(error) }
    }
}

impl From<&Error> for SourceError {
    fn from(error: &Error) -> Self {
        let is_shortage = system_error(error).is_some_and(is_shortage);
        Self { reason: region_reason(error), is_shortage }
    }
}

pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The system's error, if it refused something.
pub(super) fn system_error(error: &Error) -> Option<&io::Error> {
    match error {
        Error::Open(OpenError::System { source, .. }) => Some(source),
        _ => None,
    }
}

fn is_shortage(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

/// How long a line is not repeated.
const REPEAT_AFTER: Duration = Duration::from_secs(60);
/// How many lines are remembered: a region that is being damaged can give new ones each time.
const MAX_LINES: usize = 1_000;

/// Writes lines about trouble that can begin and end many times a second.
#[derive(Debug, Default)]
pub(super) struct ErrorLog {
    /// The lines of the last minute, and when they were written.
    written: Mutex<HashMap<String, Instant>>,
}

impl ErrorLog {
    /// Writes a line about a trouble. One about a shortage is written once a minute at most.
    pub(super) fn write(&self, trouble: &SourceError, line: &str) {
        match trouble.is_shortage {
            true => self.write_seldom(line),
            false => log(line),
        }
    }

    /// Writes a line, once a minute at most.
    pub(super) fn write_seldom(&self, line: &str) {
        self.write_seldom_about(line, line);
    }

    /// Writes a line about a subject, once a minute at most, however the lines about it differ.
    pub(super) fn write_seldom_about(&self, subject: &str, line: &str) {
        if self.is_due(subject, Instant::now()) {
            log(line);
        }
    }

    fn is_due(&self, line: &str, now: Instant) -> bool {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.retain(|_, at| now.duration_since(*at) < REPEAT_AFTER);
        let is_due = !written.contains_key(line);
        if is_due {
            if written.len() >= MAX_LINES {
                written.clear();
            }
            written.insert(line.to_owned(), now);
        }
        is_due
    }
}

pub(super) fn log(line: &str) {
    note(format_args!("talea serve: {}", printable(line)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_once_a_minute_whatever_is_written_between() {
        let log = ErrorLog::default();
        let began = Instant::now();
        let at = |millis| began + Duration::from_millis(millis);
        let due: Vec<u64> = (0..180_000).step_by(10).filter(|&t| log.is_due("a", at(t))).collect();
        assert_eq!(due, [0, 60_000, 120_000]);
        assert!(log.is_due("b", at(179_999)), "another line");
        assert!(!log.is_due("a", at(179_999)));
    }

    #[test]
    fn it_remembers_no_more_lines_than_it_needs() {
        let log = ErrorLog::default();
        let began = Instant::now();
        for n in 0..1_000 {
            assert!(log.is_due(&format!("region {n}"), began + Duration::from_secs(n)));
        }
        assert!(log.written.lock().unwrap().len() <= 60);
        let now = began + Duration::from_secs(1_000);
        for n in 0..10_000 {
            assert!(log.is_due(&format!("family {n}"), now));
        }
        assert!(log.written.lock().unwrap().len() <= MAX_LINES);
    }

    #[test]
    fn a_shortage_is_of_descriptors_or_of_memory() {
        let trouble = |errno: Errno| SourceError::from(&io::Error::from(errno));
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
            assert!(trouble(errno).is_shortage, "{errno}");
        }
        for errno in [Errno::NOENT, Errno::ACCESS, Errno::IO] {
            assert!(!trouble(errno).is_shortage, "{errno}");
        }
        let source = io::Error::from(Errno::MFILE);
        let error = Error::Open(OpenError::System { doing: "read the region", path: None, source });
        assert!(SourceError::from(&error).is_shortage);
        assert!(!SourceError::from(&Error::Full { name: "orders".to_owned() }).is_shortage);
    }
}
