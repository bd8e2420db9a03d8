//! What the region keeps beside a family's name: the bytes that a reader, also
//! one outside the process, needs to show it.
//!
//! ```text
//!   f64   how many of the kept integers make one shown unit
//!   u32 n, then n × (u32 length, label name)
//!   u32 n, then n × u64 thresholds: as kept, or floats in the order of integers
//!   u32 n, then n × (i32 schema, u32 most buckets, f64 widest zero); at most one
//!   u32 n, then n × (u32 seconds of the window, u32 m, m × f64 quantiles); at most one
//!   u32 n, then n × (u32 length, a state's name as label text)
//!   u32 length, help
//! ```
//!
//! All little-endian. Two families of one name are the same if these bytes are.

use crate::buckets::{Layout, NativeLayout, Numbers};

/// A family's definition beyond what the region itself knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Definition {
    pub(crate) labels: Vec<String>,
    pub(crate) layout: Layout,
    /// Of a summary.
    pub(crate) recent: Option<Recent>,
    pub(crate) states: Vec<String>,
    pub(crate) help: String,
}

/// Which quantiles are shown, and of what time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recent {
    pub(crate) seconds: u32,
    pub(crate) quantiles: Vec<f64>,
}

impl Definition {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Layout { per_unit, thresholds, native, .. } = &self.layout;
        let mut out = per_unit.to_le_bytes().to_vec();
        let text = |out: &mut Vec<u8>, text: &str| {
            out.extend((text.len() as u32).to_le_bytes());
            out.extend(text.as_bytes());
        };
        out.extend((self.labels.len() as u32).to_le_bytes());
        self.labels.iter().for_each(|label| text(&mut out, label));
        out.extend((thresholds.len() as u32).to_le_bytes());
        out.extend(thresholds.iter().flat_map(|t| t.to_le_bytes()));
        out.extend(u32::from(native.is_some()).to_le_bytes());
        if let Some(NativeLayout { schema, most, widest_zero }) = native {
            out.extend(i32::from(*schema).to_le_bytes());
            out.extend(most.to_le_bytes());
            out.extend(widest_zero.to_le_bytes());
        }
        out.extend(u32::from(self.recent.is_some()).to_le_bytes());
        if let Some(Recent { seconds, quantiles }) = &self.recent {
            out.extend(seconds.to_le_bytes());
            out.extend((quantiles.len() as u32).to_le_bytes());
            out.extend(quantiles.iter().flat_map(|q| q.to_le_bytes()));
        }
        out.extend((self.states.len() as u32).to_le_bytes());
        self.states.iter().for_each(|state| text(&mut out, state));
        text(&mut out, &self.help);
        out
    }

    /// `None` where the bytes are not a definition. What the values are is not among them.
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
            1 => {
                let seconds = u32::from_le_bytes(take(&mut bytes)?);
                let quantiles = (0..count(&mut bytes)?)
                    .map(|_| take(&mut bytes).map(f64::from_le_bytes))
                    .collect::<Option<_>>()?;
                Some(Recent { seconds, quantiles })
            }
            _ => return None,
        };
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

    /// In what a definition differs from the one that was expected, in words.
    pub(crate) fn difference(&self, wanted: &Self) -> String {
        let told = |what: String, found: String, wanted: String| {
            format!("it is registered with {what} {found}, and now {wanted} was asked for")
        };
        if let Some((what, [found, wanted])) = self.first_difference(wanted) {
            told(what.to_owned(), found, wanted)
        } else if self.help != wanted.help {
            told("the help".to_owned(), format!("{:?}", self.help), format!("{:?}", wanted.help))
        } else {
            "it is registered with its values stored otherwise: striped or not, whole numbers or \
             not"
            .to_owned()
        }
    }

    /// In what it differs from what others have under its name; `None` where they can be
    /// shown as one.
    pub(crate) fn disagreement(&self, wanted: &Self) -> Option<String> {
        let (what, [found, wanted]) = self.first_difference(wanted)?;
        Some(format!("it has {what} {found} here, and {wanted} in most others"))
    }

    /// What differs first, other than the help, and how it is in both.
    fn first_difference(&self, wanted: &Self) -> Option<(&'static str, [String; 2])> {
        fn told(both: [&dyn std::fmt::Debug; 2]) -> [String; 2] {
            both.map(|one| format!("{one:?}"))
        }
        let (layout, other) = (&self.layout, &wanted.layout);
        if self.labels != wanted.labels {
            Some(("the labels", told([&self.labels, &wanted.labels])))
        } else if layout.per_unit != other.per_unit || layout.numbers != other.numbers {
            // `x_seconds` may also be a plain number of things.
            let parts = |layout: &Layout| format!("{} parts", layout.per_unit);
            Some(("a unit that is kept in", [layout, other].map(parts)))
        } else if layout.thresholds != other.thresholds {
            let shown = |layout: &Layout| layout.shown().collect::<Vec<_>>();
            Some(("the buckets", told([&shown(layout), &shown(other)])))
        } else if layout.native != other.native {
            Some(("", [layout, other].map(|layout| in_words(layout.native))))
        } else if self.recent != wanted.recent {
            Some(("the quantiles", told([&self.recent, &wanted.recent])))
        } else if self.states != wanted.states {
            Some(("the states", told([&self.states, &wanted.states])))
        } else {
            None
        }
    }
}

fn in_words(native: Option<NativeLayout>) -> String {
    let Some(NativeLayout { schema, most, widest_zero }) = native else {
        return "no native buckets".to_owned();
    };
    format!("native buckets of schema {schema}, at most {most}, with a zero up to {widest_zero}")
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
            recent: Some(Recent { seconds: 600, quantiles: vec![0.5, 1.0] }),
            states: vec!["open".into()],
            help: "Zeit, die vergeht.".into(),
        }
    }

    #[test]
    fn a_definition_survives_encoding() {
        assert_eq!(Definition::decode(&some().encode(), Numbers::Whole), Some(some()));
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
}
