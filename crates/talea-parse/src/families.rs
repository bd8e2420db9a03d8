//! Samples with the metadata of their metric.

use std::borrow::Cow;
use std::collections::HashMap;

use super::metric_type::ENDINGS;
use super::{Line, MetricType, ParseError, Reader, SampleRef, Syntax};

/// A metric with its samples, in the order of the text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FamilyRef<'a> {
    /// Its name: `foo` for the samples `foo_bucket` of a histogram, in OpenMetrics also
    /// for the `foo_total` of a counter.
    pub name: Cow<'a, str>,
    /// Its type.
    pub kind: MetricType,
    /// Its help text.
    pub help: Option<Cow<'a, str>>,
    /// Its unit. OpenMetrics only.
    pub unit: Option<&'a str>,
    /// All of its samples.
    pub samples: Vec<SampleRef<'a>>,
}

/// The metrics of a text, in the order in which they are first named. If the lines of one metric
/// are apart, they are put together.
///
/// ```
/// use talea_parse::{MetricType, Syntax, families};
///
/// let text = "# TYPE size_bytes histogram\nsize_bytes_bucket{le=\"+Inf\"} 2\nup 1\n";
/// let families = families(text, Syntax::Text)?;
/// assert_eq!((families[0].name.as_ref(), families[0].kind), ("size_bytes", MetricType::Histogram));
/// assert_eq!(families[0].samples[0].name, "size_bytes_bucket");
/// assert_eq!((families[1].name.as_ref(), families[1].kind), ("up", MetricType::Unknown));
/// # Ok::<(), talea_parse::ParseError>(())
/// ```
///
/// # Errors
///
/// The first line that is not of the format.
pub fn families(input: &str, syntax: Syntax) -> Result<Vec<FamilyRef<'_>>, ParseError> {
    let mut families = Families { syntax, all: Vec::new(), named: HashMap::new(), last: None };
    for line in Reader::new(input, syntax) {
        match line? {
            Line::Type { name, kind } => families.named(name).kind = kind,
            Line::Help { name, help } => families.named(name).help = Some(help),
            Line::Unit { name, unit } => families.named(name).unit = Some(unit),
            Line::Sample(sample) => families.add(sample),
            Line::End => {}
        }
    }
    Ok(families.all)
}

struct Families<'a> {
    syntax: Syntax,
    all: Vec<FamilyRef<'a>>,
    named: HashMap<Cow<'a, str>, usize>,
    /// The family of the last sample, which is most often the family of the next one.
    last: Option<usize>,
}

impl<'a> Families<'a> {
    fn named(&mut self, name: Cow<'a, str>) -> &mut FamilyRef<'a> {
        let new = self.all.len();
        let at = *self.named.entry(name.clone()).or_insert(new);
        if at == new {
            self.all.push(FamilyRef { name, ..FamilyRef::default() });
        }
        &mut self.all[at]
    }

    fn add(&mut self, sample: SampleRef<'a>) {
        let owns = |&at: &usize| owns(&self.all[at], &sample.name, self.syntax);
        let at = self.last.filter(owns).or_else(|| {
            bases(&sample.name).filter_map(|name| self.named.get(name).copied()).find(owns)
        });
        match at {
            Some(at) => {
                self.last = Some(at);
                self.all[at].samples.push(sample);
            }
            None => self.named(sample.name.clone()).samples.push(sample),
        }
    }
}

fn owns(family: &FamilyRef<'_>, sample: &str, syntax: Syntax) -> bool {
    sample
        .strip_prefix(family.name.as_ref())
        .is_some_and(|ending| family.kind.endings(syntax).contains(&ending))
}

/// The names that the family of a sample can have; its own first.
pub(super) fn bases(sample: &str) -> impl Iterator<Item = &str> {
    ENDINGS.into_iter().filter_map(|ending| sample.strip_suffix(ending))
}
