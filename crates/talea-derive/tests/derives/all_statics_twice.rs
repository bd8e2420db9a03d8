//! Two statics of one name.

use talea::Counter;

/// Requests that were answered.
#[talea::register]
static HITS: Counter = Counter::new();

mod other {
    /// Requests that were answered.
    #[talea::register(name = "hits")]
    pub(crate) static REQUESTS: talea::Counter = talea::Counter::new();
    /// Others.
    #[talea::register]
    pub(crate) static MISSES: talea::Counter = talea::Counter::new();
}

fn main() {
    let error = talea::default_registry().unwrap_err().to_string();
    for name in ["\"hits\"", "::HITS`", "::other::REQUESTS`"] {
        assert!(error.contains(name), "{error}");
    }
    HITS.inc();
    other::REQUESTS.inc();
    other::MISSES.inc();
    // Again an error, and the others are there.
    assert!(talea::default_registry().is_err());
    assert_eq!((HITS.get() + other::REQUESTS.get(), other::MISSES.get()), (1, 1));
}
