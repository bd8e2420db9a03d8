//! Which of the formats a text is in.

/// A text format, as a reader knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Syntax {
    /// The Prometheus text format, version 0.0.4. The default.
    #[default]
    Text,
    /// OpenMetrics text, version 1.0.
    OpenMetrics,
}

impl Syntax {
    /// The format that a Content-Type names; none where it names no text format.
    ///
    /// ```
    /// use talea::parse::Syntax;
    ///
    /// let of = |header| Syntax::of_content_type(header);
    /// assert_eq!(of("text/plain; version=0.0.4; charset=utf-8"), Some(Syntax::Text));
    /// assert_eq!(of("application/openmetrics-text; version=1.0.0"), Some(Syntax::OpenMetrics));
    /// assert_eq!(of("text/html"), None);
    /// ```
    pub fn of_content_type(header: &str) -> Option<Self> {
        let media = header.split(';').next().unwrap_or(header).trim();
        if media.eq_ignore_ascii_case("text/plain") {
            Some(Self::Text)
        } else if media.eq_ignore_ascii_case("application/openmetrics-text") {
            Some(Self::OpenMetrics)
        } else {
            None
        }
    }

    /// The format that a text looks like: only OpenMetrics has a line `# EOF`.
    pub fn of_text(text: &str) -> Self {
        if text.lines().any(|line| line.trim_end() == "# EOF") {
            Self::OpenMetrics
        } else {
            Self::Text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_marker_tells_the_formats_apart() {
        assert_eq!(Syntax::of_text("a 1\n# EOF\n"), Syntax::OpenMetrics);
        assert_eq!(Syntax::of_text("a 1\n# EOF"), Syntax::OpenMetrics);
        assert_eq!(Syntax::of_text("a{b=\"# EOF\"} 1\n"), Syntax::Text);
        assert_eq!(Syntax::of_text(""), Syntax::Text);
    }
}
