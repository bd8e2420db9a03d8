//! Pages that Prometheus takes and that depart from their format: one of each kind that was found
//! when mutated pages were read by the parser of Prometheus v0.315 and by this one.

use talea_parse::Syntax;

use Syntax::{OpenMetrics, Text};

/// A page and its format, what Prometheus reads there, and the places that break the format.
pub(crate) struct Page {
    pub(crate) syntax: Syntax,
    pub(crate) text: &'static str,
    /// Samples as `name{label="value"} value`, help texts as `# name "text"`, types as
    /// `# name: type`; each ends with `;`.
    pub(crate) read: &'static str,
    /// `line:column` of each violation, and its rule if that is not `syntax`.
    pub(crate) violations: &'static str,
}

const fn text(text: &'static str, read: &'static str, violations: &'static str) -> Page {
    Page { syntax: Text, text, read, violations }
}

const fn openmetrics(text: &'static str, read: &'static str, violations: &'static str) -> Page {
    Page { syntax: OpenMetrics, text, read, violations }
}

pub(crate) const PAGES: &[Page] = &[
    // Label values: line feeds, other escapes, no commas.
    text("x{a=\"b\nc\"} 1\ny 2\n", "x{a=\"b\\nc\"} 1;y 2;", "1:7 raw-line-feed"),
    text(
        "x{a=\"b\n\n\nc\",__d=\"e\"} 1\n",
        "x{a=\"b\\n\\n\\nc\",__d=\"e\"} 1;",
        "1:7 raw-line-feed, 4:4 reserved-label",
    ),
    text("x{a=\"\\t\\z\\'\\é\"} 1\n", "x{a=\"\\\\t\\\\z\\\\'\\\\é\"} 1;", "1:6"),
    text("x{a=\"\\\\\\\"\\n\"} 1\n", "x{a=\"\\\\\\\"\\n\"} 1;", ""),
    text("x{a=\"1\"b=\"2\" c=\"3\"} 1\n", "x{a=\"1\",b=\"2\",c=\"3\"} 1;", "1:8 no-comma"),
    text("{a=\"1\"\"b\"=\"2\"\"x\"} 1\n", "x{a=\"1\",b=\"2\"} 1;", "1:7 no-comma, 1:14"),
    text("x{a=\"1\",} 1\n", "x{a=\"1\"} 1;", ""),
    text("x{\"a\nb\"=\"1\"} 1\n", "x{a\nb=\"1\"} 1;", "1:5 raw-line-feed"),
    text("{\"a\\\\\\z\"} 1\n", "a\\\\z 1;", "1:6"),
    // Names without a character, which Prometheus drops when it has parsed them.
    text("{\"\"} 1\n", " 1;", "1:2 empty-name"),
    text("x{\"\"=\"1\"} 1\n", "x{=\"1\"} 1;", "1:3 empty-name"),
    // Values behind the name.
    text(
        "x+1\nx.5 7\nx-Inf\n",
        "x 1;x 0.5;x -inf;",
        "1:2 no-blank, 2:1 series-twice, 2:2 no-blank, 3:1 series-twice, 3:2 no-blank",
    ),
    text("x{a=\"1\"}2\n", "x{a=\"1\"} 2;", ""),
    // Blanks before a name are a part of it.
    text("  x 1\n\t{\"x\"} 2\n", "  x 1;x 2;", "1:1, 2:1"),
    // Help texts.
    text("# HELP x-y z\nx 1\n", "# x \"y z\";x 1;", "1:9"),
    text("# HELP x{ z\n", "# x \" z\";", "1:9"),
    text("# HELP x  z \n", "# x \" z \";", ""),
    text("# HELP x \t \n", "# x \"\";", ""),
    text("# HELP x z\r\n", "# x \"z\\r\";", "1:11"),
    text("# HELP x \\z \\\n", "# x \"\\\\z \\\\\";", "1:10"),
    text("# HELP \"x\ny\" z\nx 1\n", "# x\ny \"z\";x 1;", "1:10 raw-line-feed"),
    // Types.
    text("# TYPE x-gauge\nx 1\n", "# x: gauge;x 1;", "1:9"),
    text("#\tTYPE \t x\tgauge\n", "# x: gauge;", ""),
    // Comments.
    text("#TYPE  TYPE x gauge\nx 1\n", "x 1;", "1:2"),
    text("#HELP x gauge\nx 1\n", "x 1;", "1:2"),
    text("# TYPE\nx 1\n", "x 1;", "1:7"),
    text("# TYPES x y\n#TYPES x y\n# HELP\n#HELP\n# type x y\n#\n", "", ""),
    // NULs.
    text("\0x 1\n", "", "1:1"),
    text("x 1\n \0\ny 2\n9\n", "x 1;", "2:2"),
    text("x 1\n# \0\n9\n", "x 1;", "2:3"),
    text("x 1\n#a\0\n9\n", "x 1;", "2:3"),
    text("# a\0b\nx 1\n", "x 1;", ""),
    text("# HE\0LP \0x \0y\n", "# x \"\\0y\";", "1:5"),
    text("x{a=\"b\0c\"} 1\n", "x{a=\"b\\0c\"} 1;", ""),
    text("x{a=\"b\"\0\0} 1\n", "x{a=\"b\\\"\\0\"} 1;", "1:8"),
    text("x{a= \0\"b\"} 1\n", "x{a=\"b\"} 1;", "1:6"),
    text("x{a=\"\\\0n\"} 1\n", "x{a=\"\\\\\\0n\"} 1;", "1:6, 1:7"),
    // OpenMetrics.
    openmetrics("x{a=\"1\",} 1\n# EOF\n", "x{a=\"1\"} 1;", "1:9"),
    openmetrics("{a=\"1\",\"x\"} 1\n# EOF\n", "x{a=\"1\"} 1;", "1:8"),
    openmetrics("x{a=\"\\t\\z\"} 1\n# EOF\n", "x{a=\"\\\\t\\\\z\"} 1;", ""),
    openmetrics("x{\"a\nb\"=\"1\"} 1\n# EOF\n", "x{a\nb=\"1\"} 1;", "1:5 raw-line-feed"),
    openmetrics("# HELP x \"y\"\n# EOF\n", "# x \"\\\"y\\\"\";", "1:10 help-quote"),
    openmetrics("# HELP x y\\\n# EOF\n", "# x \"y\\\\\";", ""),
    openmetrics("# HELP x y\r\n# EOF\n", "# x \"y\\r\";", "1:11"),
    openmetrics("# HELP x y\n\0# EOF\n", "# x \"y\\n\";", "1:11"),
    openmetrics("# TY\0PE \0x gauge\n# EO\0F\n\0", "# x: gauge;", "1:5, 2:5"),
    openmetrics("# UNIT \"x_m/s\" m/s\n# EOF\n", "", "1:17"),
    openmetrics("x{a=\"b\"\0} 1\n# EOF\n", "x{a=\"b\\\"\"} 1;", "1:8"),
    openmetrics(
        "# TYPE x counter\nx_total 1 # {a=\"b\",} 1\n# EOF\n",
        "# x: counter;x_total 1;",
        "2:20",
    ),
];
