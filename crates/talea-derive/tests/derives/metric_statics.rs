use talea::{Counter, Histogram, Seconds};

#[talea::register]
static HITS: Counter = Counter::new();

/// A set.
#[talea::register(nested)]
static NESTED: Counter = Counter::new();

/// Time.
#[talea::register(bucket = [1.0])]
static TIME: Histogram<Seconds> = Histogram::new();

/// Changes.
#[talea::register]
static mut CHANGES: Counter = Counter::new();

#[talea::counted(HITS, errors = HITS)]
fn count() -> Result<(), ()> {
    Ok(())
}

#[talea::counted(HITS, error = HITS)]
fn nothing() {}

#[talea::timed(TIME)]
const fn constant() {}

#[talea::timed(TIME)]
struct Work;

fn main() {
    HITS.inc();
    let _ = count();
    nothing();
    constant();
}
