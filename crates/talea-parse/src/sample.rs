//! Samples: as they stand in the text, and kept beyond it.

use std::borrow::Cow;

use super::labels::LabelsRef;
use super::plain::Plain;

/// A sample that borrows from the text if it can.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleRef<'a> {
    /// Its name, such as `x_seconds_bucket`.
    pub name: Cow<'a, str>,
    /// Its labels.
    pub labels: LabelsRef<'a>,
    /// Its value.
    pub value: f64,
    /// Seconds since 1970, in either format.
    pub timestamp: Option<f64>,
    /// An exemplar. OpenMetrics only.
    pub exemplar: Option<ExemplarRef<'a>>,
}

/// A reference from a sample to one observation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExemplarRef<'a> {
    /// Its labels.
    pub labels: LabelsRef<'a>,
    /// The observed value.
    pub value: f64,
    /// The time, in seconds since 1970.
    pub timestamp: Option<f64>,
}

/// A sample that is kept beyond the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The sample's name, such as `x_seconds_bucket`.
    pub name: String,
    /// Label names and values, unescaped, in the order of the line.
    pub labels: Vec<(String, String)>,
    /// The value.
    pub value: f64,
}

impl<'a> From<Plain<'a>> for SampleRef<'a> {
    #[inline(always)]
    fn from(plain: Plain<'a>) -> Self {
        Self {
            name: Cow::Borrowed(plain.name),
            labels: LabelsRef::new(plain.labels),
            value: plain.value,
            timestamp: None,
            exemplar: None,
        }
    }
}

impl From<SampleRef<'_>> for Sample {
    fn from(sample: SampleRef<'_>) -> Self {
        let labels = sample.labels.iter();
        Self {
            name: sample.name.into_owned(),
            labels: labels.map(|(name, value)| (name.into_owned(), value.into_owned())).collect(),
            value: sample.value,
        }
    }
}
