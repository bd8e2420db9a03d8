//! The types of the standard library that are label values.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use super::{KeyWriter, LabelText, LabelValue, as_pointed_to};

macro_rules! texts {
    ($($text:ty)*) => {$(
        impl LabelValue for $text {
            #[inline]
            fn write(&self, out: &mut LabelText) {
                out.push_escaped(self);
            }
            #[inline]
            fn add_to_key<K: KeyWriter>(&self, key: &mut K) {
                key.text(self);
            }
        }
    )*};
}
texts!(str String Cow<'_, str>);

impl LabelValue for char {
    #[inline]
    fn write(&self, out: &mut LabelText) {
        out.push_escaped(self.encode_utf8(&mut [0; 4]));
    }
    #[inline]
    fn add_to_key<K: KeyWriter>(&self, key: &mut K) {
        key.word(u64::from(u32::from(*self)));
    }
}

impl LabelValue for bool {
    #[inline]
    fn is_known_early() -> bool {
        true
    }
    #[inline]
    fn cardinality() -> Option<usize> {
        Some(2)
    }
    #[inline]
    fn index(&self) -> usize {
        usize::from(*self)
    }
    #[inline]
    fn write(&self, out: &mut LabelText) {
        out.push(if *self { b"true" } else { b"false" });
    }
    #[inline]
    fn write_nth(n: usize, out: &mut LabelText) {
        (n == 1).write(out);
    }
}

/// `None` has the number 0, before the numbers of the values.
impl<T: LabelValue> LabelValue for Option<T> {
    #[inline]
    fn cardinality() -> Option<usize> {
        T::cardinality().map(|n| n.saturating_add(1))
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
        self.as_ref().map_or(0, |value| 1 + value.index())
    }
    #[inline]
    fn write(&self, out: &mut LabelText) {
        if let Some(value) = self {
            value.write(out);
        }
    }
    #[inline]
    fn add_to_key<K: KeyWriter>(&self, key: &mut K) {
        match (Self::cardinality(), self) {
            (Some(values), _) => key.digit(values, self.index()),
            (None, None) => key.digit(2, 0),
            (None, Some(value)) => {
                key.digit(2, 1);
                value.add_to_key(key);
            }
        }
    }
    #[inline]
    fn write_nth(n: usize, out: &mut LabelText) {
        if let Some(n) = n.checked_sub(1) {
            T::write_nth(n, out);
        }
    }
}

macro_rules! pointers {
    ($($pointer:ty)*) => {$(
        impl<T: LabelValue + ?Sized> LabelValue for $pointer {
            as_pointed_to!();
        }
    )*};
}
pointers!(&T Box<T> Arc<T> Rc<T>);

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl LabelValue for $t {
            #[inline]
            fn write(&self, out: &mut LabelText) {
                out.push(itoa::Buffer::new().format(*self).as_bytes());
            }
            #[inline]
            fn add_to_key<K: KeyWriter>(&self, key: &mut K) {
                // Integers of 128 bits are two words. The width of the type distinguishes signed
                // from unsigned.
                let n = *self as i128;
                key.word(n as u64);
                if size_of::<$t>() > 8 {
                    key.word((n >> 64) as u64);
                }
            }
        }
    )*};
}
integers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);
