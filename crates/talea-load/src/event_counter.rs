//! Counts server-sent events in a stream of bytes (WHATWG HTML, section 9.2.6).

/// The events so far. A blank line ends an event; comments and blank lines alone are none.
#[derive(Debug, Default)]
pub(super) struct EventCounter {
    pub(super) events: u64,
    /// Whether the event that is under way has data.
    has_data: bool,
    /// The beginning of the line that is under way, as far as it shows whether that is data.
    line: Vec<u8>,
    /// Whether the last byte was a carriage return, of which a line feed is a part.
    after_return: bool,
}

const DATA: &[u8] = b"data";

impl EventCounter {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let is_end = match byte {
                b'\n' => !self.after_return,
                b'\r' => true,
                other => {
                    if self.line.len() <= DATA.len() {
                        self.line.push(*other);
                    }
                    false
                }
            };
            self.after_return = *byte == b'\r';
            if is_end {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        if self.line.is_empty() {
            self.events += u64::from(self.has_data);
            self.has_data = false;
        }
        // The name of a field ends with its line, or with a colon.
        let rest = self.line.strip_prefix(DATA);
        self.has_data |= rest.is_some_and(|rest| rest.is_empty() || rest[0] == b':');
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_end_with_blank_lines_however_the_bytes_are_cut() {
        for (text, events) in [
            ("data: a\n\ndata: b\n\n", 2),
            ("data: a\r\n\r\ndata: b\r\n\r\n", 2),
            ("data: a\r\rdata\r\r", 2),
            ("event: x\ndata: a\ndata: b\n\n", 1),
            (": a comment\n\n\n\n", 0),
            ("database: x\n\n", 0),
            ("data: a\n", 0),
            ("", 0),
        ] {
            for size in 1..=3 {
                let mut counter = EventCounter::default();
                text.as_bytes().chunks(size).for_each(|bytes| counter.take(bytes));
                assert_eq!(counter.events, events, "{text:?} by {size}");
            }
        }
    }
}
