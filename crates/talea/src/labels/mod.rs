//! Labels: how values become the text that finds a series.

mod displayed;
mod fingerprint;
mod http;
mod key;
pub(crate) mod mixed_radix;
mod set;
mod table;
mod text;
mod values;

pub use displayed::Displayed;
pub(crate) use fingerprint::{Fingerprint, draw_factors};
pub use http::{HttpMethod, StatusClass};
pub use key::KeyWriter;
pub(crate) use key::LabelKey;
pub use set::{LabelSet, Member};
pub use text::LabelText;
pub(crate) use text::{RawLabel, pairs, raw_labels};

/// A combination of labels, usually by `#[derive(Labels)]` on a struct: each
/// field is a label, its name the label's name.
///
/// By hand, [`NAMES`](Self::NAMES) and [`write`](Self::write) are enough where a
/// label takes any text:
///
/// ```
/// use talea::{Counter, Family, LabelText, Labels, Opts, Registry};
///
/// struct Host(String);
///
/// impl Labels for Host {
///     type Static = Self;
///     const NAMES: &'static [&'static str] = &["host"];
///     fn write(&self, out: &mut LabelText) {
///         out.label("host", &self.0);
///     }
/// }
///
/// let registry = Registry::for_test()?;
/// let calls: Family<Host, Counter> = registry.register(Opts::new("calls", "Calls."))?;
/// calls.with(&Host("a.example".to_owned())).inc();
/// assert_eq!(registry.snapshot().value("calls_total", &[("host", "a.example")]), Some(1.0));
/// # Ok::<(), talea::Error>(())
/// ```
/// If the methods do not agree with each other, values count in the wrong series;
/// nothing else breaks. They are called on every look-up, so none should allocate.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no group of labels",
    label = "this must be a struct with `#[derive(Labels)]`",
    note = "put each label into a field: `#[derive(Labels)] struct Sale<'a> {{ country: &'a str }}`"
)]
pub trait Labels {
    /// These labels with `'static` values, for the type of a family.
    type Static: 'static;
    /// The label names, in order.
    const NAMES: &'static [&'static str];
    /// The number of combinations, if every label has fixed values; `usize::MAX` if there are more than
    /// fit.
    fn cardinality() -> Option<usize> {
        None
    }
    /// Whether [`cardinality`](Self::cardinality) is a constant, so that a look-up compiles one way alone.
    #[doc(hidden)]
    fn is_known_early() -> bool {
        false
    }
    /// Why no family can be registered with these labels yet, in words.
    fn fault() -> Option<String> {
        None
    }
    /// The number of this combination, from 0; meaningless if the labels are not fixed.
    fn index(&self) -> usize {
        0
    }
    /// Writes each label, in order.
    fn write(&self, out: &mut LabelText);
    /// Adds its values to the key of the lookup cache.
    #[doc(hidden)]
    fn add_to_key<K: KeyWriter>(&self, key: &mut K) {
        key.other();
    }
    /// Writes the combination with this [`index`](Self::index), if they are
    /// fixed: the same text as that combination writes itself.
    fn write_nth(n: usize, out: &mut LabelText) {
        let _ = (n, out);
    }
}

/// No labels.
impl Labels for () {
    type Static = ();
    const NAMES: &'static [&'static str] = &[];
    #[inline]
    fn cardinality() -> Option<usize> {
        Some(1)
    }
    #[inline]
    fn is_known_early() -> bool {
        true
    }
    #[inline]
    fn write(&self, _: &mut LabelText) {}
    #[inline]
    fn add_to_key<K: KeyWriter>(&self, _: &mut K) {}
}

/// The parts of labels, or of the value of one, that a pointer to them has too.
macro_rules! as_pointed_to {
    () => {
        #[inline]
        fn cardinality() -> Option<usize> {
            T::cardinality()
        }
        #[inline]
        fn is_known_early() -> bool {
            T::is_known_early()
        }
        fn fault() -> Option<String> {
            T::fault()
        }
        #[inline]
        fn index(&self) -> usize {
            (**self).index()
        }
        #[inline]
        fn write(&self, out: &mut LabelText) {
            (**self).write(out);
        }
        #[inline]
        fn add_to_key<K: KeyWriter>(&self, key: &mut K) {
            (**self).add_to_key(key);
        }
        #[inline]
        fn write_nth(n: usize, out: &mut LabelText) {
            T::write_nth(n, out);
        }
    };
}
use as_pointed_to;

/// Lets `with(&labels)` take labels that are used more than once.
impl<T: Labels + ?Sized> Labels for &T {
    type Static = T::Static;
    const NAMES: &'static [&'static str] = T::NAMES;
    as_pointed_to!();
}

/// A label's value. Text, characters, integers and bools are, behind a `Box`, an `Arc` or an `Rc`
/// too; an `Option` of one (`None` is empty, which Prometheus takes for absent); any type with
/// `Display`, as [`Displayed`].
///
/// If a label has few values, give it a type with fixed values, so that a look-up is arithmetic: an
/// enum by `#[derive(LabelValue)]`; [`StatusClass`], [`HttpMethod`]; a
/// [`label_set!`](crate::label_set) if the values are known only at startup.
///
/// If you implement it by hand for arbitrary text, [`write`](Self::write) is enough:
///
/// ```
/// use talea::{LabelText, LabelValue};
///
/// struct Percent(u8);
///
/// impl LabelValue for Percent {
///     fn write(&self, out: &mut LabelText) {
///         out.push_displayed(&self.0);
///         out.push_escaped("%");
///     }
/// }
///
/// let mut text = LabelText::new();
/// text.label("full", &Percent(7));
/// assert_eq!(text.as_bytes(), br#"full="7%""#);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a label's value",
    label = "not text, an integer, a bool or an enum of fixed values",
    note = "if it implements `Display`, mark the field with `#[label(display)]`",
    note = "if it is an enum without fields, give it `#[derive(LabelValue)]`"
)]
pub trait LabelValue {
    /// The number of values, if they are fixed.
    fn cardinality() -> Option<usize> {
        None
    }
    /// Whether [`cardinality`](Self::cardinality) is a constant.
    #[doc(hidden)]
    fn is_known_early() -> bool {
        false
    }
    /// Why no family can be registered with it yet, in words: a set that is fixed
    /// at run time and was not.
    fn fault() -> Option<String> {
        None
    }
    /// The number of this value, from 0; meaningless if the values are not fixed.
    fn index(&self) -> usize {
        0
    }
    /// Writes the value; it is escaped on the way.
    fn write(&self, out: &mut LabelText);
    /// Adds its values to the key of the lookup cache.
    #[doc(hidden)]
    #[inline]
    fn add_to_key<K: KeyWriter>(&self, key: &mut K) {
        match Self::cardinality() {
            Some(values) => key.digit(values, self.index()),
            None => key.other(),
        }
    }
    /// Writes the value with this [`index`](Self::index), if the values are fixed.
    fn write_nth(n: usize, out: &mut LabelText) {
        let _ = (n, out);
    }
}
