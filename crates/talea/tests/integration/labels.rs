//! Claims about labels that hold for any value.
#![cfg(not(miri))]

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use crate::support::descriptors::raise_limit;
use crate::support::metrics::{alone, count, opts};
use proptest::prelude::*;
use talea::derived::{pop, product, push};
use talea::{
    Counter, Displayed, Family, HttpMethod, LabelText, LabelValue, Labels, Registry,
    SeriesSnapshot, StatusClass,
};

#[derive(Clone, Copy, Debug, PartialEq, LabelValue)]
#[label(rename_all = "SCREAMING_SNAKE_CASE")]
enum Method {
    Card,
    BankTransfer,
    #[label(rename = "I \"owe\" you\\\n")]
    Iou,
}

talea::label_set! { struct Route; }

const ROUTES: [&str; 4] = ["/", "/users/:id", "a\"b\\c\nd", ""];

#[derive(Clone, Copy, Debug, PartialEq, Labels)]
struct Fixed {
    gift: bool,
    method: Option<Method>,
    route: Route,
    class: StatusClass,
    maybe: Option<Option<bool>>,
    verb: HttpMethod,
}

fn nth(n: usize) -> String {
    let mut text = LabelText::new();
    Fixed::write_nth(n, &mut text);
    String::from_utf8(text.as_bytes().to_vec()).unwrap()
}

fn some_fixed() -> impl Strategy<Value = Fixed> {
    Route::fix(ROUTES).unwrap();
    let method = prop_oneof![Just(Method::Card), Just(Method::BankTransfer), Just(Method::Iou)];
    let route = proptest::sample::select(Route::all().collect::<Vec<_>>());
    let class = any::<u16>().prop_map(|status| StatusClass::of(status % 700));
    let verb = proptest::sample::select(HttpMethod::ALL);
    let method = proptest::option::of(method);
    (any::<bool>(), method, route, class, any::<Option<Option<bool>>>(), verb).prop_map(
        |(gift, method, route, class, maybe, verb)| Fixed {
            gift,
            method,
            route,
            class,
            maybe,
            verb,
        },
    )
}

/// Text of all kinds: mostly short and full of what has to be escaped.
fn some_text() -> impl Strategy<Value = String> {
    let special = vec!['"', '\\', '\n', '\0', '\r', 'n', '{', '}', ',', '=', '💡'];
    let hostile = prop_oneof![proptest::sample::select(special), any::<char>()];
    let hostile = proptest::collection::vec(hostile, 0..40);
    let long = (any::<char>(), 0..=65_536_usize)
        .prop_map(|(c, len)| c.to_string().repeat(len / c.len_utf8()));
    prop_oneof![
        8 => hostile.prop_map(String::from_iter),
        1 => Just(String::new()),
        1 => long,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn numbers_and_digits_are_each_others_inverse(
        labels in proptest::collection::vec((1..9_usize, any::<usize>()), 0..8)
    ) {
        let radices: Vec<_> = labels.iter().map(|(radix, _)| Some(*radix)).collect();
        let digits: Vec<_> = labels.iter().map(|(radix, any)| any % radix).collect();
        let all = product(&radices).unwrap();
        let number = radices.iter().zip(&digits).fold(0, |n, (radix, digit)| push(n, *radix, *digit));
        prop_assert!(number < all);
        let mut rest = number;
        let mut back: Vec<_> = radices.iter().rev().map(|radix| pop(&mut rest, *radix)).collect();
        back.reverse();
        prop_assert_eq!((rest, back), (0, digits));
    }

    #[test]
    fn a_combination_writes_what_its_number_writes(labels in some_fixed()) {
        prop_assert!(labels.index() < Fixed::cardinality().unwrap());
        let text = LabelText::of(&labels);
        prop_assert_eq!(nth(labels.index()).into_bytes(), text.as_bytes());
    }

    #[test]
    fn any_text_comes_back_from_a_snapshot(first in some_text(), second in some_text(), n in any::<i128>()) {
        let (family, registry) = &*ANY_TEXT;
        let labels = || Three { first: &first, second: Displayed(&second), n };
        let before = family.with(labels()).get();
        family.with(labels()).inc();
        prop_assert_eq!(family.with(&labels()).get(), before + 1);
        let snapshot = registry.snapshot();
        let shown = n.to_string();
        let expected = [("first", first.as_str()), ("second", &second), ("n", &shown)];
        let all = snapshot.families().flat_map(|family| family.series());
        prop_assert_eq!(all.filter(|series: &SeriesSnapshot<'_>| {
            series.labels().iter().map(|(name, value)| (*name, value.as_str())).eq(expected)
        }).count(), 1);
        prop_assert_eq!(family.dropped(), 0);
        // Else each snapshot would be larger than the one before.
        prop_assert!(family.remove(labels()));
    }

    #[test]
    fn equal_text_of_any_type_and_lifetime_is_one_series(text in some_text(), c in any::<char>()) {
        raise_limit();
        let registry = Registry::for_test().unwrap();
        // The long ones are left to the other test: this region is small.
        let text = if text.len() > 1000 { c.to_string() } else { text };
        let by_text = texts::<ByText>(&registry);
        by_text.with(ByText { text: &text }).add(1);
        by_text.with(ByText { text: &text.clone() }).add(2);
        texts(&registry).with(ByString { text: text.clone() }).add(4);
        texts::<ByCow>(&registry).with(ByCow { text: Cow::from(&text) }).add(8);
        texts(&registry).with(ByArc { text: Arc::from(&*text) }).add(16);
        texts(&registry).with(ByBox { text: Box::from(&*text) }).add(32);
        texts::<ByDisplayed>(&registry).with(ByDisplayed { text: Displayed(&text) }).add(64);
        texts::<ByDisplay>(&registry).with(ByDisplay { text: &text }).add(128);
        texts::<ByOption>(&registry).with(ByOption { text: Some(&text) }).add(256);
        let mut chars = text.chars();
        if let (Some(text), None) = (chars.next(), chars.next()) {
            texts(&registry).with(ByChar { text }).add(512);
            by_text.with(ByText { text: &text.to_string() }).add(512);
        } else {
            by_text.with(ByText { text: &text }).add(1024);
        }
        let snapshot = registry.snapshot();
        prop_assert_eq!(count(&snapshot, "texts_total"), 1);
        prop_assert_eq!(snapshot.value("texts_total", &[("text", &text)]), Some(511.0 + 1024.0));
    }
}

/// Families of one name and the same label names are the same family.
fn texts<L: Labels + 'static>(registry: &Registry) -> Family<L, Counter> {
    registry.register(opts("texts")).unwrap()
}

/// Labels of one text, each of another type.
macro_rules! by_text {
    ($($name:ident $(<$lifetime:lifetime>)? { $($field:tt)* })*) => {$(
        #[derive(Labels)]
        struct $name $(<$lifetime>)? { $($field)* }
    )*};
}

by_text! {
    ByText<'a> { text: &'a str }
    ByString { text: String }
    ByCow<'a> { text: Cow<'a, str> }
    ByArc { text: Arc<str> }
    ByBox { text: Box<str> }
    ByDisplayed<'a> { text: Displayed<&'a str> }
    ByOption<'a> { text: Option<&'a str> }
    ByChar { text: char }
}

#[derive(Labels)]
struct ByDisplay<'a> {
    #[label(display)]
    text: &'a str,
}

#[derive(Labels)]
struct Three<'a> {
    first: &'a str,
    second: Displayed<&'a str>,
    n: i128,
}

/// A registry stays mapped until the process ends, so all cases share this one.
static ANY_TEXT: LazyLock<(Family<Three<'static>, Counter>, Registry)> = LazyLock::new(|| {
    let registry = Registry::new().unwrap();
    (registry.register(opts("any")).unwrap(), registry)
});

#[test]
fn all_combinations_have_numbers_and_texts_of_their_own() {
    Route::fix(ROUTES).unwrap();
    let all = Fixed::cardinality().unwrap();
    assert_eq!(all, 2 * 4 * 4 * 6 * 4 * 11);
    // A missing value and one that is empty show the same; so do `None` and
    // `Some(None)`.
    let texts: HashSet<_> = (0..all).map(nth).collect();
    assert_eq!(texts.len(), 2 * 4 * 4 * 6 * 3 * 11);
}

#[test]
fn a_family_of_a_run_time_set_waits_for_its_values() {
    talea::label_set! { struct Late; }
    #[derive(Labels)]
    struct Call<'a> {
        host: &'a str,
        late: Option<Late>,
    }
    let registry = Registry::for_test().unwrap();
    let register = || registry.register::<Family<Call<'static>, Counter>>(opts("c"));
    let message = register().unwrap_err().to_string();
    assert!(message.contains("\"c\": its label set `Late` has no values yet"), "{message}");
    Late::fix(["a", "b"]).unwrap();
    let calls = register().unwrap();
    calls.with(Call { host: "h", late: Late::find("b") }).inc();
    calls.with(Call { host: "h", late: Late::find("c") }).inc();
    let snapshot = registry.snapshot();
    for late in ["b", ""] {
        assert_eq!(snapshot.value("c_total", &[("host", "h"), ("late", late)]), Some(1.0));
    }
}

#[test]
fn a_family_of_a_run_time_set_has_a_series_for_each_value_and_no_more() {
    talea::label_set! { struct Tenant; }
    #[derive(Labels)]
    struct Job {
        tenant: Tenant,
        done: bool,
    }
    Tenant::fix((0..100).map(|n| format!("tenant-{n}"))).unwrap();
    let (registry, jobs) = alone::<Family<Job, Counter>>(opts("jobs"));
    for tenant in Tenant::all() {
        jobs.with(Job { tenant, done: true }).add(1 + tenant.index() as u64);
    }
    let snapshot = registry.snapshot();
    for n in 0..100 {
        let tenant = format!("tenant-{n}");
        let labels = [("tenant", tenant.as_str()), ("done", "true")];
        assert_eq!(snapshot.value("jobs_total", &labels), Some(f64::from(n) + 1.0));
    }
    assert_eq!(jobs.dropped(), 0);
}

#[test]
fn labels_that_a_macro_defines_in_part_display_themselves() {
    macro_rules! define {
        ($type:ident, $(#[$derived:meta])*) => {
            #[derive(Labels)]
            struct OfType {
                #[label(display)]
                address: $type,
            }
            $(#[$derived])*
            struct Derived {
                #[label(display)]
                address: std::net::Ipv4Addr,
            }
        };
    }
    use std::net::Ipv4Addr;
    define!(Ipv4Addr, #[derive(Labels)]);
    let address = Ipv4Addr::LOCALHOST;
    let mut text = LabelText::new();
    OfType { address }.write(&mut text);
    Derived { address }.write(&mut text);
    assert_eq!(text.as_bytes(), br#"address="127.0.0.1"address="127.0.0.1""#);
}

#[test]
fn a_display_in_parts_or_that_fails_is_written_as_far_as_it_came() {
    struct Half;
    impl std::fmt::Display for Half {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a\"")?;
            writeln!(f, "{}", 7)?;
            Err(std::fmt::Error)
        }
    }
    let mut text = LabelText::new();
    text.label("half", &Displayed(Half));
    assert_eq!(text.as_bytes(), br#"half="a\"7\n""#);
}
