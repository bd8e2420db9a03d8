//! A family's definition, and its encoding in the region, beside its name: the bytes that any
//! reader, also one outside the process, needs to show the family.
//!
//! ```text
//!   f64   how many of the kept integers make one shown unit
//!   u32 n, then n × (u32 length, label name)
//!   u32 n, then n × u64 thresholds: as kept, or floats in the order of integers
//!   u32 n, then n × (i32 schema, u32 most buckets, f64 widest zero); at most one
//!   u32 n, then, unless that is 0, u32 seconds of the window, u32 m, m × f64 quantiles;
//!     2 where samples are kept, else 1
//!   u32 n, then n × (u32 length, a state's name as label text)
//!   u32 length, help
//! ```
//!
//! All little-endian. Two families of one name are the same if these bytes are.

use talea_region::{FamilyCopy, Number, Relation};

pub(crate) mod kind;
pub(crate) mod names;
pub(crate) mod opts;
pub(crate) mod unit;

use self::names::OVERFLOW_LABEL;
use crate::histogram::buckets::{Layout, NativeLayout, Numbers};

/// The part of a family's definition that the region does not interpret.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Definition {
    pub(crate) labels: Vec<String>,
    pub(crate) layout: Layout,
    /// The quantiles of a summary.
    pub(crate) recent: Option<Recent>,
    pub(crate) states: Vec<String>,
    pub(crate) help: String,
}

/// The quantiles of a summary, and the window that they are of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recent {
    pub(crate) seconds: u32,
    pub(crate) quantiles: Vec<f64>,
    /// Whether samples are kept beside it.
    pub(crate) sampled: bool,
}

impl Recent {
    /// The most quantiles of a summary.
    pub(crate) const MOST: usize = 100;

    /// Whether its quantiles are some that a summary can show.
    pub(crate) fn is_sound(&self) -> bool {
        let quantiles = &self.quantiles;
        quantiles.len() <= Self::MOST
            && quantiles.iter().all(|q| (0.0..=1.0).contains(q))
            && quantiles.is_sorted_by(|a, b| a < b)
    }
}

/// A family's definition; `None` if Talea did not write it.
pub(crate) fn of_family(family: &FamilyCopy) -> Option<Definition> {
    Definition::decode(&family.definition, Numbers::of(family.number))
}

impl Definition {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Layout { per_unit, thresholds, native, .. } = &self.layout;
        // More than most take.
        let mut out = Vec::with_capacity(64 + 8 * thresholds.len() + self.help.len());
        out.extend(per_unit.to_le_bytes());
        let text = |out: &mut Vec<u8>, text: &str| {
            out.extend((text.len() as u32).to_le_bytes());
            out.extend(text.as_bytes());
        };
        out.extend((self.labels.len() as u32).to_le_bytes());
        self.labels.iter().for_each(|label| text(&mut out, label));
        out.extend((thresholds.len() as u32).to_le_bytes());
        thresholds.iter().for_each(|threshold| out.extend(threshold.to_le_bytes()));
        out.extend(u32::from(native.is_some()).to_le_bytes());
        if let Some(NativeLayout { schema, most, widest_zero }) = native {
            out.extend(i32::from(*schema).to_le_bytes());
            out.extend(most.to_le_bytes());
            out.extend(widest_zero.to_le_bytes());
        }
        let count = self.recent.as_ref().map_or(0, |recent| 1 + u32::from(recent.sampled));
        out.extend(count.to_le_bytes());
        if let Some(Recent { seconds, quantiles, .. }) = &self.recent {
            out.extend(seconds.to_le_bytes());
            out.extend((quantiles.len() as u32).to_le_bytes());
            quantiles.iter().for_each(|quantile| out.extend(quantile.to_le_bytes()));
        }
        out.extend((self.states.len() as u32).to_le_bytes());
        self.states.iter().for_each(|state| text(&mut out, state));
        text(&mut out, &self.help);
        out
    }

    /// `None` if the bytes are not a definition. They do not include the type of the values
    /// (`numbers`).
    pub(crate) fn decode(mut bytes: &[u8], numbers: Numbers) -> Option<Self> {
        let per_unit = f64::from_le_bytes(take(&mut bytes)?);
        let labels = (0..count(&mut bytes)?).map(|_| text(&mut bytes)).collect::<Option<_>>()?;
        let thresholds = (0..count(&mut bytes)?)
            .map(|_| take(&mut bytes).map(u64::from_le_bytes))
            .collect::<Option<_>>()?;
        let native = match count(&mut bytes)? {
            0 => None,
            1 => Some(NativeLayout {
                schema: i8::try_from(i32::from_le_bytes(take(&mut bytes)?)).ok()?,
                most: u32::from_le_bytes(take(&mut bytes)?),
                widest_zero: f64::from_le_bytes(take(&mut bytes)?),
            }),
            _ => return None,
        };
        let recent = match count(&mut bytes)? {
            0 => None,
            n @ 1..=2 => {
                let seconds = u32::from_le_bytes(take(&mut bytes)?);
                let quantiles = (0..count(&mut bytes)?)
                    .map(|_| take(&mut bytes).map(f64::from_le_bytes))
                    .collect::<Option<_>>()?;
                Some(Recent { seconds, quantiles, sampled: n == 2 })
            }
            _ => return None,
        };
        if recent.as_ref().is_some_and(|recent| !recent.is_sound()) {
            return None;
        }
        let layout = Layout { numbers, per_unit, thresholds, native };
        let states = (0..count(&mut bytes)?).map(|_| text(&mut bytes)).collect::<Option<_>>()?;
        let help = text(&mut bytes)?;
        (bytes.is_empty() && layout.is_sound()).then_some(Self {
            labels,
            layout,
            recent,
            states,
            help,
        })
    }

    /// The difference between this definition and the expected one, in words.
    pub(crate) fn difference(&self, wanted: &Self) -> String {
        let differs = |[found, wanted]: [String; 2]| {
            format!("it is already registered with {found}, not with {wanted}")
        };
        if let Some(both) = self.first_difference(wanted) {
            differs(both)
        } else if self.help != wanted.help {
            differs([format!("the help {:?}", self.help), format!("{:?}", wanted.help)])
        } else {
            "it is already registered with values of another kind: striped or not, whole numbers \
             or not"
                .to_owned()
        }
    }

    /// How two definitions of one name, kind and cells are shown on a page. Their values are added up
    /// if they differ in nothing but the help and the order of labels; series of other labels stand
    /// beside each other.
    pub(crate) fn relation(number: Number, one: &[u8], other: &[u8]) -> Relation {
        let numbers = Numbers::of(number);
        let (Some(one), Some(other)) = (Self::decode(one, numbers), Self::decode(other, numbers))
        else {
            return Relation::Apart;
        };
        let are_relabelled = one.labels != other.labels;
        // A summary's samples are in a family of their own, which has these labels too.
        let is_simple =
            ![&one, &other].iter().any(|it| it.recent.is_some() || are_free(&it.labels));
        let has_same_names = sorted(&one.labels) == sorted(&other.labels);
        let relabelled = Self { labels: one.labels.clone(), ..other };
        match one.first_difference(&relabelled) {
            None if !are_relabelled || (is_simple && has_same_names) => Relation::Added,
            None if is_simple => Relation::Beside,
            _ => Relation::Apart,
        }
    }

    /// The first difference other than the help, as this one and the other have it.
    fn first_difference(&self, other: &Self) -> Option<[String; 2]> {
        fn both(what: &str, one: impl std::fmt::Debug, other: impl std::fmt::Debug) -> [String; 2] {
            [format!("{what} {one:?}"), format!("{other:?}")]
        }
        let [mine, others] = [&self.layout, &other.layout];
        if self.labels != other.labels {
            Some(difference_of_labels(&self.labels, &other.labels))
        } else if mine.per_unit != others.per_unit || mine.numbers != others.numbers {
            // `x_seconds` may also be a plain number of things.
            let found = format!("a unit that is kept in {} parts", mine.per_unit);
            Some([found, format!("one in {}", others.per_unit)])
        } else if mine.thresholds != others.thresholds {
            let shown = |layout: &Layout| layout.shown().collect::<Vec<_>>();
            Some(both("the buckets", shown(mine), shown(others)))
        } else if mine.native != others.native {
            Some([mine, others].map(|layout| in_words(layout.native)))
        } else if self.recent != other.recent {
            Some(both("the quantiles", &self.recent, &other.recent))
        } else if self.states != other.states {
            Some(both("the states", &self.states, &other.states))
        } else {
            None
        }
    }
}

/// Whether each call names labels of its own. Such a family is defined by the label of the overflow
/// series, the only one that all its series may have.
pub(crate) fn are_free(labels: &[String]) -> bool {
    matches!(labels, [only] if only == OVERFLOW_LABEL)
}

fn sorted(labels: &[String]) -> Vec<&String> {
    let mut sorted: Vec<_> = labels.iter().collect();
    sorted.sort_unstable();
    sorted
}

/// Readers have no use for the name that defines free labels, so it is not shown.
fn difference_of_labels(one: &[String], other: &[String]) -> [String; 2] {
    let free = || "a choice of labels by each call".to_owned();
    match (are_free(one), are_free(other)) {
        (true, _) => [free(), format!("the labels {other:?}")],
        (_, true) => [format!("the labels {one:?}"), free()],
        _ => [format!("the labels {one:?}"), format!("{other:?}")],
    }
}

fn in_words(native: Option<NativeLayout>) -> String {
    let Some(NativeLayout { schema, most, widest_zero }) = native else {
        return "no native bucketing".to_owned();
    };
    format!("native bucketing of schema {schema}, at most {most}, with a zero up to {widest_zero}")
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

/// A count of things of at least four bytes each, so never more than fit.
fn count(bytes: &mut &[u8]) -> Option<usize> {
    let n = u32::from_le_bytes(take(bytes)?) as usize;
    (n <= bytes.len() / 4).then_some(n)
}

fn text(bytes: &mut &[u8]) -> Option<String> {
    let len = u32::from_le_bytes(take(bytes)?) as usize;
    let (text, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Definition {
        Definition {
            labels: vec!["method".into(), "route".into()],
            layout: Layout {
                numbers: Numbers::Whole,
                per_unit: 1e9,
                thresholds: vec![5, 10, u64::MAX],
                native: Some(NativeLayout { schema: -4, most: 160, widest_zero: 1e-6 }),
            },
            recent: Some(Recent { seconds: 600, quantiles: vec![0.5, 1.0], sampled: false }),
            states: vec!["open".into()],
            help: "Zeit, die vergeht.".into(),
        }
    }

    #[test]
    fn a_definition_survives_encoding() {
        let mut some = some();
        for sampled in [false, true] {
            some.recent.as_mut().unwrap().sampled = sampled;
            assert_eq!(Definition::decode(&some.encode(), Numbers::Whole), Some(some.clone()));
        }
        let bare = Definition::default();
        assert_eq!(Definition::decode(&bare.encode(), Numbers::Whole), Some(bare));
    }

    #[test]
    fn bytes_that_are_cut_or_padded_are_no_definition() {
        let whole = some().encode();
        for len in 0..whole.len() {
            assert_eq!(Definition::decode(&whole[..len], Numbers::Whole), None, "{len}");
        }
        assert_eq!(Definition::decode(&[whole, vec![0]].concat(), Numbers::Whole), None);
        assert_eq!(Definition::decode(&[0xFF; 64], Numbers::Whole), None);
    }
    #[test]
    fn quantiles_that_no_summary_can_show_are_no_definition() {
        let too_many = (0..=100).map(|n| f64::from(n) / 200.0).collect();
        for quantiles in
            [vec![1.5], vec![-0.5], vec![f64::NAN], vec![0.9, 0.5], vec![0.5, 0.5], too_many]
        {
            let mut some = some();
            some.recent.as_mut().unwrap().quantiles.clone_from(&quantiles);
            assert_eq!(Definition::decode(&some.encode(), Numbers::Whole), None, "{quantiles:?}");
        }
    }
}
