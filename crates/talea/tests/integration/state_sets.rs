//! State sets: which states hold, and what can be a state.

use std::thread;

use talea::{DynamicStateSet, Family, Kind, LabelValue, Labels, Opts, Registry, StateSet};

use crate::support::metrics::{count, reason, registry};
use crate::support::pages::{TEXTS, alone, assert_no_violation};

#[derive(Clone, Copy, LabelValue)]
enum Circuit {
    Closed,
    HalfOpen,
    #[label(rename = "\"open\"\\\n")]
    Open,
}

#[derive(Labels)]
struct Host<'a> {
    host: &'a str,
}

/// A value of any text, which is no set of states.
struct Any(&'static str);

impl LabelValue for Any {
    fn write(&self, out: &mut talea::LabelText) {
        out.push_escaped(self.0);
    }
}

fn circuit(registry: &Registry) -> StateSet<Circuit> {
    registry.register(Opts::new("circuit", "The circuit.")).unwrap()
}

#[test]
fn a_set_state_holds_alone_and_others_can_join_it() {
    let registry = registry();
    let circuit = circuit(&registry);
    let all = [Circuit::Closed, Circuit::HalfOpen, Circuit::Open];
    let holds = || all.map(|state| circuit.is(state));
    let shown = || {
        let snapshot = registry.snapshot();
        ["closed", "half_open", "\"open\"\\\n"]
            .map(|state| snapshot.value("circuit", &[("circuit", state)]) == Some(1.0))
    };
    let check = |expected| {
        assert_eq!((holds(), shown()), (expected, expected));
        assert_eq!(count(&registry.snapshot(), "circuit"), 3);
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
    let registry = registry();
    circuit(&registry).set(Circuit::Open);
    let expected = "# HELP circuit The circuit.\n# TYPE circuit gauge\n\
                    circuit{circuit=\"closed\"} 0\n\
                    circuit{circuit=\"half_open\"} 0\n\
                    circuit{circuit=\"\\\"open\\\"\\\\\\n\"} 1\n";
    assert_eq!(registry.snapshot().to_text(), expected);
    assert_eq!(registry.snapshot().family("circuit").unwrap().kind(), Kind::StateSet);
}

#[test]
fn a_family_of_state_sets_shows_each_state_of_each_series_and_no_others() {
    let registry = registry();
    let opts = Opts::new("circuit", "The circuit.").limit(2);
    let circuits: Family<Host<'static>, StateSet<Circuit>> = registry.register(opts).unwrap();
    assert_eq!(registry.snapshot().to_text(), "");
    circuits.with(Host { host: "a" }).set(Circuit::Closed);
    circuits.with(Host { host: "b" }).enable(Circuit::HalfOpen);
    let snapshot = registry.snapshot();
    let state = |host, state| snapshot.value("circuit", &[("host", host), ("circuit", state)]);
    assert_eq!(["closed", "half_open"].map(|name| state("a", name)), [Some(1.0), Some(0.0)]);
    assert_eq!(["closed", "half_open"].map(|name| state("b", name)), [Some(0.0), Some(1.0)]);
    assert_eq!(count(&snapshot, "circuit"), 6, "{snapshot:?}");

    circuits.with(Host { host: "c" }).set(Circuit::HalfOpen);
    let snapshot = registry.snapshot();
    let overflow = snapshot.select("circuit", &[("otel_metric_overflow", "true")]);
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
    let most: StateSet<Most> = registry.register(Opts::new("most", "All.")).unwrap();
    for (n, state) in Most::all().enumerate() {
        most.set(state);
        assert!(Most::all().enumerate().all(|(other, state)| most.is(state) == (n == other)));
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.value("most", &[("most", &n.to_string())]), Some(1.0));
        assert_eq!(snapshot.total("most", &[]), Some(1.0));
    }
    Most::all().for_each(|state| most.enable(state));
    assert_eq!(registry.snapshot().total("most", &[]), Some(64.0));

    let opts = Opts::new("x", "X.");
    let refused = "a state set has 1 to 64 states, this one 65; use an enum of the states";
    assert_eq!(reason(registry.register::<StateSet<TooMany>>(opts)), refused);
    let refused = "a state set has 1 to 64 states, this one any number; use an enum of the states";
    assert_eq!(reason(registry.register::<StateSet<Any>>(opts)), refused);
    let refused =
        "its label set `NotYet` has no values yet; call `NotYet::fix(…)` before registering";
    assert_eq!(reason(registry.register::<StateSet<NotYet>>(opts)), refused);
}

#[test]
fn states_that_would_look_the_same_are_refused() {
    let registry = registry();
    // `None` and `Some(None)` are both written as nothing.
    let message = reason(registry.register::<StateSet<Option<Option<bool>>>>(Opts::new("x", "X.")));
    assert_eq!(message, "its state \"\" is there twice; use an enum of the states");
    registry.register::<StateSet<Option<bool>>>(Opts::new("y", "Y.")).unwrap();
}

#[test]
fn any_names_of_states_make_a_sound_page() {
    let registry = registry();
    let states = ["say \"no\"", "C:\\new", "two\nlines", "a b", ""];
    let opts = Opts::new("x", "X.").states(&states);
    let set: DynamicStateSet = registry.register(opts).unwrap();
    for (n, state) in states.iter().enumerate() {
        set.set(n);
        registry.snapshot().assert_value("x", &[("x", state)], 1.0);
        for (format, syntax) in TEXTS {
            assert_no_violation(&alone(&registry, format), syntax);
        }
    }
    let twice = registry.register::<DynamicStateSet>(Opts::new("y", "Y.").states(&["a\"", "a\""]));
    assert!(reason(twice).contains("is there twice"));
}

#[test]
fn a_state_set_is_named_as_a_label_can_be() {
    #[derive(Labels)]
    struct Own<'a> {
        circuit: &'a str,
    }
    let registry = registry();
    let named = |name| reason(registry.register::<StateSet<Circuit>>(Opts::new(name, "X.")));
    assert_eq!(named("a:b"), "a state set's name is a label's too, and those have no ':'");
    for name in ["le", "quantile"] {
        assert_eq!(
            named(name),
            "a state set's name is a label's too, and histograms and summaries write this one \
             themselves"
        );
    }
    let own =
        registry.register::<Family<Own<'static>, StateSet<Circuit>>>(Opts::new("circuit", "X."));
    assert_eq!(
        reason(own),
        "its label \"circuit\" cannot be used: a state set names its states by this label"
    );
}

#[test]
fn threads_that_change_different_states_do_not_undo_each_other() {
    const ROUNDS: usize = if cfg!(miri) { 5 } else { 5_000 };
    let registry = registry();
    let circuit = circuit(&registry);
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
