#[talea::timed()]
fn timed() -> u64 {
    7
}

#[talea::counted]
fn counted() -> u64 {
    7
}

#[talea::counted(talea::Counter::new(), errors = talea::Counter::new())]
fn misspelt() -> u64 {
    7
}

#[talea::timed(talea::Counter::new())]
struct NoFunction;

// Each is an error of its own and no further one where it is used.
fn main() {
    let _ = (timed(), counted(), misspelt(), NoFunction);
}
