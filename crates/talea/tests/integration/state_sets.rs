//! State sets: which states hold, and what can be a state.

use std::thread;

use talea::{DynamicStateSet, Family, Kind, LabelValue, Labels, Registry, StateSet};

use crate::support::metrics::{
    By, OVERFLOW, Users, alone, count, opts, reason, register, registry,
};
use crate::support::pages::{self, TEXTS, assert_no_violation};

#[derive(Clone, Copy, LabelValue)]
enum Circuit {
    Closed,
    HalfOpen,
    #[label(rename = "\"open\"\\\n")]
    Open,
}

/// A value of any text, which is no set of states.
struct Any(&'static str);

impl LabelValue for Any {
    fn write(&self, out: &mut talea::LabelText) {
        out.push_escaped(self.0);
    }
}

fn circuit() -> (Registry, StateSet<Circuit>) {
    alone(opts("circuit"))
}

#[test]
fn a_set_state_holds_alone_and_others_can_join_it() {
    let (registry, circuit) = circuit();
    let all = [Circuit::Closed, Circuit::HalfOpen, Circuit::Open];
    let check = |expected| {
        let snapshot = registry.snapshot();
        let holds = all.map(|state| circuit.is(state));
        let shown = ["closed", "half_open", "\"open\"\\\n"]
            .map(|state| snapshot.value("circuit", &[("circuit", state)]) == Some(1.0));
        assert_eq!((holds, shown), (expected, expected));
        assert_eq!(count(&snapshot, "circuit"), 3);
    };
    check([false; 3]);
    circuit.set(Circuit::HalfOpen);
    check([false, true, false]);
    circuit.set(Circuit::Open);
    check([false, false, true]);
    circuit.enable(Circuit::Closed);
    circuit.enable(Circuit::Closed);
    check([true, false, true]);
    circuit.disable(Circuit::Open);
    circuit.disable(Circuit::HalfOpen);
    check([true, false, false]);
    circuit.clone().set(Circuit::HalfOpen);
    check([false, true, false]);
}

#[test]
fn a_state_set_is_a_gauge_of_each_state_in_the_text() {
    let (registry, circuit) = circuit();
    circuit.set(Circuit::Open);
    let expected = "# HELP circuit Some.\n# TYPE circuit gauge\n\
                    circuit{circuit=\"closed\"} 0\n\
                    circuit{circuit=\"half_open\"} 0\n\
                    circuit{circuit=\"\\\"open\\\"\\\\\\n\"} 1\n";
    assert_eq!(registry.snapshot().to_text(), expected);
    assert_eq!(registry.snapshot().family("circuit").unwrap().kind(), Kind::StateSet);
}

#[test]
fn a_family_of_state_sets_shows_each_state_of_each_series_and_no_others() {
    let (registry, circuits) = alone::<Users<StateSet<Circuit>>>(opts("circuit").limit(2));
    assert_eq!(registry.snapshot().to_text(), "");
    circuits.with(By { user: "a" }).set(Circuit::Closed);
    circuits.with(By { user: "b" }).enable(Circuit::HalfOpen);
    let snapshot = registry.snapshot();
    let state = |user, state| snapshot.value("circuit", &[("user", user), ("circuit", state)]);
    assert_eq!(["closed", "half_open"].map(|name| state("a", name)), [Some(1.0), Some(0.0)]);
    assert_eq!(["closed", "half_open"].map(|name| state("b", name)), [Some(0.0), Some(1.0)]);
    assert_eq!(count(&snapshot, "circuit"), 6, "{snapshot:?}");

    circuits.with(By { user: "c" }).set(Circuit::HalfOpen);
    let snapshot = registry.snapshot();
    let overflow = snapshot.select("circuit", &OVERFLOW);
    let states: Vec<_> = overflow.map(|series| series.as_f64()).collect();
    assert_eq!(states, [Some(0.0), Some(1.0), Some(0.0)]);
}

#[test]
fn sixty_four_states_are_apart_and_one_more_is_refused() {
    talea::label_set! { struct Most; }
    talea::label_set! { struct TooMany; }
    talea::label_set! { struct NotYet; }
    Most::fix((0..64).map(|n| n.to_string())).unwrap();
    TooMany::fix((0..65).map(|n| n.to_string())).unwrap();
    let registry = registry();
    let most: StateSet<Most> = register(&registry, "most");
    for (n, state) in Most::all().enumerate() {
        most.set(state);
        assert!(Most::all().enumerate().all(|(other, state)| most.is(state) == (n == other)));
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.value("most", &[("most", &n.to_string())]), Some(1.0));
        assert_eq!(snapshot.total("most", &[]), Some(1.0));
    }
    Most::all().for_each(|state| most.enable(state));
    assert_eq!(registry.snapshot().total("most", &[]), Some(64.0));

    let refused = "a state set has 1 to 64 states; found 65; use an enum of the states";
    assert_eq!(reason(registry.register::<StateSet<TooMany>>(opts("x"))), refused);
    let refused = "a state set has 1 to 64 states; found any number; use an enum of the states";
    assert_eq!(reason(registry.register::<StateSet<Any>>(opts("x"))), refused);
    let refused =
        "its label set `NotYet` has no values yet; call `NotYet::fix(…)` before registering";
    assert_eq!(reason(registry.register::<StateSet<NotYet>>(opts("x"))), refused);
}

#[test]
fn states_that_would_look_the_same_are_refused() {
    let registry = registry();
    // `None` and `Some(None)` are both written as nothing.
    let message = reason(registry.register::<StateSet<Option<Option<bool>>>>(opts("x")));
    assert_eq!(message, "its state \"\" is given twice; name each state once");
    register::<StateSet<Option<bool>>>(&registry, "y");
}

#[test]
fn any_names_of_states_make_a_sound_page() {
    let states = ["say \"no\"", "C:\\new", "two\nlines", "a b", ""];
    let (registry, set) = alone::<DynamicStateSet>(opts("x").states(&states));
    for (n, state) in states.iter().enumerate() {
        set.set(n);
        registry.snapshot().assert_value("x", &[("x", state)], 1.0);
        for (format, syntax) in TEXTS {
            assert_no_violation(&pages::alone(&registry, format), syntax);
        }
    }
    let twice = registry.register::<DynamicStateSet>(opts("y").states(&["a\"", "a\""]));
    assert!(reason(twice).contains("is given twice"));
}

#[test]
fn a_state_set_is_named_as_a_label_can_be() {
    #[derive(Labels)]
    struct Own<'a> {
        circuit: &'a str,
    }
    let registry = registry();
    let named = |name| reason(registry.register::<StateSet<Circuit>>(opts(name)));
    let is_label = "a state set's name is a label's too, and";
    assert_eq!(named("a:b"), format!("{is_label} those have no ':'"));
    for name in ["le", "quantile"] {
        let expected = format!("{is_label} histograms and summaries write this one themselves");
        assert_eq!(named(name), expected);
    }
    let own = registry.register::<Family<Own<'static>, StateSet<Circuit>>>(opts("circuit"));
    let expected =
        "its label \"circuit\" cannot be used: a state set names its states by this label";
    assert_eq!(reason(own), expected);
}

#[test]
fn threads_that_change_different_states_do_not_undo_each_other() {
    const ROUNDS: usize = if cfg!(miri) { 5 } else { 5_000 };
    let (registry, circuit) = circuit();
    thread::scope(|scope| {
        for state in [Circuit::Closed, Circuit::HalfOpen, Circuit::Open] {
            let circuit = &circuit;
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    circuit.enable(state);
                    assert!(circuit.is(state));
                    circuit.disable(state);
                    assert!(!circuit.is(state));
                }
                circuit.enable(state);
            });
        }
    });
    assert_eq!(registry.snapshot().total("circuit", &[]), Some(3.0));
}
