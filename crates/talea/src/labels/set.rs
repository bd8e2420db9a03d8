//! Sets of label values that are fixed while the program runs.

use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::LabelText;
pub use super::table::Member;
use super::table::Table;
use crate::error::{Error, counted};

/// Makes a type whose values are texts that are fixed once, at the start of the
/// program: routes, tenants or regions from a configuration. A family of it is
/// looked up as fast as one of an enum (by arithmetic, up to 4,096 combinations), and its
/// series are at most as many as there are combinations.
///
/// ```
/// use talea::{Counter, Family, Labels, Opts, Registry};
///
/// talea::label_set! {
///     /// The routes, known once the configuration is read.
///     pub struct Route;
/// }
///
/// #[derive(Labels)]
/// struct Call { route: Option<Route> }
///
/// let configured = vec!["/users".to_owned(), "/users/:id".to_owned()];
/// Route::fix(configured)?;
///
/// let registry = Registry::for_test()?;
/// let calls: Family<Call, Counter> = registry.register(Opts::new("calls", "Calls."))?;
/// calls.with(Call { route: Route::find("/users") }).inc();
/// calls.with(Call { route: Route::find("/unknown") }).inc(); // `None`: an empty label
///
/// let snapshot = registry.snapshot();
/// assert_eq!(snapshot.value("calls_total", &[("route", "/users")]), Some(1.0));
/// assert_eq!(snapshot.value("calls_total", &[("route", "")]), Some(1.0));
/// assert!(Route::all().map(|route| route.as_str()).eq(["/users", "/users/:id"]));
/// # Ok::<(), talea::Error>(())
/// ```
///
/// The type is `Copy` and 4 bytes, and has
///
/// - `fix(texts) -> Result<(), talea::Error>`: fixes the values, for the whole
///   process and for good. The same list again is fine. Errors: another list, an
///   empty one, one with a text twice, more than 65,536 texts. Cost: some hashing
///   of each text, and about 100 bytes for it.
/// - `find(text) -> Option<Self>`: the value with that text; `None` if there is no such value, or nothing is
///   fixed yet. Cost: a hash and a comparison, about 4 ns for texts of 8 to 32 bytes. Nothing is
///   allocated or locked.
/// - `all()`: each value, in the order of the list.
/// - `as_str() -> &'static str`: its text.
///
/// Any thread may call these at any time. A family can only be registered with a
/// set that is fixed.
#[macro_export]
macro_rules! label_set {
    ($(#[$attribute:meta])* $vis:vis struct $name:ident;) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        $vis struct $name($crate::derived::Member);

        const _: () = {
            static SET: $crate::derived::LabelSet =
                $crate::derived::LabelSet::new(::core::stringify!($name));

            #[allow(dead_code)]
            impl $name {
                /// Fixes the values, once, before a family is registered with them.
                ///
                /// # Errors
                ///
                /// They are fixed to another list already; the list is empty, has a
                /// text twice, or more than 65,536.
                $vis fn fix<T: ::core::convert::AsRef<str>>(
                    texts: impl ::core::iter::IntoIterator<Item = T>,
                ) -> ::core::result::Result<(), $crate::Error> {
                    SET.fix(texts)
                }

                /// The value with this text, if there is one.
                #[inline]
                #[must_use]
                $vis fn find(text: &str) -> ::core::option::Option<Self> {
                    ::core::option::Option::map(SET.find(text), Self)
                }

                /// Each value, in the order of the list; empty before it is fixed.
                $vis fn all() -> impl ::core::iter::ExactSizeIterator<Item = Self> {
                    ::core::iter::Iterator::map(SET.all(), Self)
                }

                /// The value's text.
                #[must_use]
                $vis fn as_str(self) -> &'static str {
                    SET.text(self.0)
                }
            }

            impl ::core::fmt::Debug for $name {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    f.debug_tuple(::core::stringify!($name)).field(&SET.text(self.0)).finish()
                }
            }

            impl $crate::LabelValue for $name {
                #[inline]
                fn cardinality() -> ::core::option::Option<usize> {
                    ::core::option::Option::Some(SET.cardinality())
                }
                fn fault() -> ::core::option::Option<::std::string::String> {
                    SET.fault()
                }
                #[inline]
                fn index(&self) -> usize {
                    SET.index(self.0)
                }
                #[inline]
                fn write(&self, out: &mut $crate::LabelText) {
                    SET.write_nth(SET.index(self.0), out);
                }
                #[inline]
                fn write_nth(n: usize, out: &mut $crate::LabelText) {
                    SET.write_nth(n, out);
                }
            }
        };
    };
}

/// The values of a type made by [`label_set!`](crate::label_set). It is empty until the values are
/// fixed, and then never changes.
#[derive(Debug)]
pub struct LabelSet {
    name: &'static str,
    table: OnceLock<Table>,
    /// The length of the table, so that readers need not test whether there is one.
    len: AtomicUsize,
}

impl LabelSet {
    /// A set without values yet.
    pub const fn new(name: &'static str) -> Self {
        Self { name, table: OnceLock::new(), len: AtomicUsize::new(0) }
    }

    /// Fixes the values; the same again are fine.
    pub fn fix<T: AsRef<str>>(&self, texts: impl IntoIterator<Item = T>) -> Result<(), Error> {
        let texts: Vec<String> = texts.into_iter().map(|text| text.as_ref().to_owned()).collect();
        let fail = |reason| Error::LabelSet { name: self.name, reason };
        if let Some(table) = self.table.get() {
            return check_same(table, &texts).map_err(fail);
        }
        let table = Table::new(texts.clone()).map_err(fail)?;
        let fixed = self.table.get_or_init(|| {
            // Before any value can be found.
            self.len.store(table.len(), Relaxed);
            table
        });
        // Another thread may have been faster, with this list or with another one.
        check_same(fixed, &texts).map_err(fail)
    }

    /// The place of a text.
    #[inline]
    pub fn find(&self, text: &str) -> Option<Member> {
        self.table.get()?.find(text)
    }

    /// All places, in the order of the list.
    pub fn all(&self) -> impl ExactSizeIterator<Item = Member> + use<> {
        (0..self.cardinality()).map(Member::nth)
    }

    /// The text at a place.
    pub fn text(&'static self, member: Member) -> &'static str {
        self.table.get().map_or("", |table| table.text(member))
    }

    /// The number of values; 0 before they are fixed.
    #[inline]
    pub fn cardinality(&self) -> usize {
        self.len.load(Relaxed)
    }

    /// Why no family can be registered with it yet.
    pub fn fault(&self) -> Option<String> {
        let name = self.name;
        self.table.get().is_none().then(|| {
            format!(
                "its label set `{name}` has no values yet; call `{name}::fix(…)` before registering"
            )
        })
    }

    /// The number of a place.
    #[inline]
    pub fn index(&self, member: Member) -> usize {
        member.number()
    }

    /// Writes the value with a number, escaped when it was fixed.
    #[inline]
    pub fn write_nth(&self, n: usize, out: &mut LabelText) {
        if let Some(table) = self.table.get() {
            out.push_raw(table.escaped(n));
        }
    }
}

/// Checks that a list is the one that a set was fixed to; the error has the difference, in words.
fn check_same(table: &Table, texts: &[String]) -> Result<(), String> {
    let expected = table.len();
    let different = table.texts().zip(texts).enumerate().find(|(_, (fixed, text))| fixed != text);
    if let Some((n, (fixed, text))) = different {
        return Err(format!(
            "it is fixed already; expected {fixed:?} as value {} of {expected}, found {text:?}",
            n + 1
        ));
    }
    if texts.len() != expected {
        let (expected, found) = (counted(expected, "value"), texts.len());
        return Err(format!("it is fixed already; expected its {expected}, found {found}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LabelValue;

    fn message(result: Result<(), Error>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn a_set_is_fixed_once() {
        crate::label_set! { struct Route; }
        assert_eq!(Route::find("/users"), None);
        assert_eq!(Route::all().len(), 0);
        assert_eq!(Route::cardinality(), Some(0));
        let fault = Route::fault().unwrap();
        assert!(fault.contains("`Route` has no values yet; call `Route::fix(…)`"), "{fault}");

        assert!(Route::fix(["/users", "/users/:id"]).is_ok());
        assert!(Route::fix(vec!["/users".to_owned(), "/users/:id".to_owned()]).is_ok());
        assert_eq!((Route::fault(), Route::cardinality()), (None, Some(2)));
        for (list, part) in [
            (vec!["/users", "/items"], "expected \"/users/:id\" as value 2 of 2, found \"/items\""),
            (vec!["/users"], "expected its 2 values, found 1"),
            (vec!["/users", "/users/:id", "/c"], "expected its 2 values, found 3"),
            (vec![], "expected its 2 values, found 0"),
        ] {
            let message = message(Route::fix(list));
            assert!(message.contains("`Route`") && message.contains(part), "{message}");
        }
        assert!(Route::all().map(Route::as_str).eq(["/users", "/users/:id"]));
    }

    #[test]
    fn values_that_cannot_be_a_set_leave_it_open() {
        crate::label_set! { struct Tenant; }
        let many = std::iter::repeat_n("", Table::MAX + 1);
        for (message, part) in [
            (message(Tenant::fix(Vec::<String>::new())), "found no values"),
            (message(Tenant::fix(["a", "b", "a"])), "found the value \"a\" twice"),
            (message(Tenant::fix(many)), "found 65537 values; expected at most 65536"),
        ] {
            assert!(message.contains("`Tenant`") && message.contains(part), "{message}");
        }
        assert!(Tenant::fix(["a"]).is_ok());
        let a = Tenant::find("a").unwrap();
        assert_eq!(format!("{a:?}"), "Tenant(\"a\")");
        assert_eq!(std::mem::size_of_val(&Some(a)), 4);
    }

    #[test]
    fn every_value_of_many_is_found_and_nothing_else() {
        crate::label_set! { struct Big; }
        let n = if cfg!(miri) { 100 } else { 5_000 };
        let text = |n: usize| format!("/{}/{n}", "x".repeat(n % 70));
        assert!(Big::fix((0..n).map(text)).is_ok());
        assert_eq!(Big::find(""), None);
        for n in 0..n {
            let found = Big::find(&text(n)).unwrap();
            assert_eq!((found.index(), found.as_str()), (n, text(n).as_str()));
            for other in [text(n) + "/", text(n).replacen('/', "-", 1), text(n)[1..].to_owned()] {
                assert_eq!(Big::find(&other), None, "{other}");
            }
        }
    }

    #[test]
    fn texts_that_differ_in_any_byte_or_in_length_are_different() {
        crate::label_set! { struct Zeros; }
        let lens = if cfg!(miri) { 20 } else { 80 };
        let zeros = |len| "\0".repeat(len);
        assert!(Zeros::fix((0..lens).map(zeros)).is_ok());
        for len in 0..lens {
            assert_eq!(Zeros::find(&zeros(len)).map(|found| found.index()), Some(len));
            for at in 0..len {
                let mut other = zeros(len);
                other.replace_range(at..=at, "\u{1}");
                assert_eq!(Zeros::find(&other), None, "{at} of {len}");
            }
        }
        assert_eq!(Zeros::find(&zeros(lens)), None);
    }

    #[test]
    fn hostile_texts_are_escaped_and_found_and_so_is_an_empty_one() {
        crate::label_set! { struct Hostile; }
        let texts =
            ["", "a\"b", "c\\", "\n", "\0", "ü💡", "{}=,", "\",x=\"", "a\u{0}\"\\\n long enough"];
        assert!(Hostile::fix(texts).is_ok());
        for text in texts {
            let found = Hostile::find(text).unwrap();
            assert_eq!(found.as_str(), text);
            let (mut by_set, mut escaped) = (LabelText::new(), LabelText::new());
            found.write(&mut by_set);
            text.write(&mut escaped);
            assert_eq!(by_set.as_bytes(), escaped.as_bytes());
        }
    }

    #[test]
    fn threads_that_fix_at_once_agree() {
        crate::label_set! { struct Raced; }
        let won: usize = std::thread::scope(|scope| {
            let threads = (0..4).map(|n| {
                scope.spawn(move || usize::from(Raced::fix([format!("{}", n % 2)]).is_ok()))
            });
            let threads: Vec<_> = threads.collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((won, Raced::all().len()), (2, 1), "those with the same list");
    }
}
