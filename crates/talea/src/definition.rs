//! What the region keeps beside a family's name: the bytes that a reader, also
//! one outside the process, needs to show it.
//!
//! ```text
//!   f64   how many of the kept integers make one shown unit
//!   u32 n, then n × (u32 length, label name)
//!   u32 n, then n × u64 thresholds, as kept
//!   u32 n, then n × (u32 length, a state's name as label text)
//!   u32 length, help
//! ```
//!
//! All little-endian. Two families of one name are the same if these bytes are.

/// A family's definition beyond what the region itself knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Definition {
    pub(crate) per_unit: f64,
    pub(crate) labels: Vec<String>,
    pub(crate) thresholds: Vec<u64>,
    pub(crate) states: Vec<String>,
    pub(crate) help: String,
}

impl Definition {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.per_unit.to_le_bytes().to_vec();
        let text = |out: &mut Vec<u8>, text: &str| {
            out.extend((text.len() as u32).to_le_bytes());
            out.extend(text.as_bytes());
        };
        out.extend((self.labels.len() as u32).to_le_bytes());
        self.labels.iter().for_each(|label| text(&mut out, label));
        out.extend((self.thresholds.len() as u32).to_le_bytes());
        out.extend(self.thresholds.iter().flat_map(|t| t.to_le_bytes()));
        out.extend((self.states.len() as u32).to_le_bytes());
        self.states.iter().for_each(|state| text(&mut out, state));
        text(&mut out, &self.help);
        out
    }

    /// `None` where the bytes are not a definition.
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let per_unit = f64::from_le_bytes(take(&mut bytes)?);
        let labels = (0..count(&mut bytes)?).map(|_| text(&mut bytes)).collect::<Option<_>>()?;
        let thresholds = (0..count(&mut bytes)?)
            .map(|_| take(&mut bytes).map(u64::from_le_bytes))
            .collect::<Option<_>>()?;
        let states = (0..count(&mut bytes)?).map(|_| text(&mut bytes)).collect::<Option<_>>()?;
        let help = text(&mut bytes)?;
        bytes.is_empty().then_some(Self { per_unit, labels, thresholds, states, help })
    }

    /// In what a definition differs from the one that was expected, in words.
    pub(crate) fn difference(&self, wanted: &Self) -> String {
        let told = |what, found: &dyn std::fmt::Debug, wanted: &dyn std::fmt::Debug| {
            format!("it is registered with {what} {found:?}, and now {wanted:?} was asked for")
        };
        if self.labels != wanted.labels {
            told("the labels", &self.labels, &wanted.labels)
        } else if self.per_unit != wanted.per_unit {
            // `x_seconds` may also be a plain number of things.
            format!(
                "it is registered with a unit that is kept in {} parts, and now one in {} was \
                 asked for",
                self.per_unit, wanted.per_unit
            )
        } else if self.thresholds != wanted.thresholds {
            let shown =
                |d: &Self| d.thresholds.iter().map(|&t| t as f64 / d.per_unit).collect::<Vec<_>>();
            told("the buckets", &shown(self), &shown(wanted))
        } else if self.states != wanted.states {
            told("the states", &self.states, &wanted.states)
        } else if self.help != wanted.help {
            told("the help", &self.help, &wanted.help)
        } else {
            "it is registered with its values stored otherwise: striped or not, whole numbers or \
             not"
            .to_owned()
        }
    }
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
            per_unit: 1e9,
            labels: vec!["method".into(), "route".into()],
            thresholds: vec![5, 10, u64::MAX],
            states: vec!["open".into()],
            help: "Zeit, die vergeht.".into(),
        }
    }

    #[test]
    fn a_definition_survives_encoding() {
        assert_eq!(Definition::decode(&some().encode()), Some(some()));
        let bare = Definition { per_unit: 1.0, ..Definition::default() };
        assert_eq!(Definition::decode(&bare.encode()), Some(bare));
    }

    #[test]
    fn bytes_that_are_cut_or_padded_are_no_definition() {
        let whole = some().encode();
        for len in 0..whole.len() {
            assert_eq!(Definition::decode(&whole[..len]), None, "{len}");
        }
        assert_eq!(Definition::decode(&[whole, vec![0]].concat()), None);
        assert_eq!(Definition::decode(&[0xFF; 64]), None);
    }
}
