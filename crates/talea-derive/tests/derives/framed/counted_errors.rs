use talea::Counter;

static CALLS: Counter = Counter::new();
static FAILURES: Counter = Counter::new();

#[talea::counted(CALLS, error = FAILURES)]
fn price() -> Option<u64> {
    None
}

#[talea::counted(CALLS, error = FAILURES)]
async fn later() -> u64 {
    7
}

fn main() {}
