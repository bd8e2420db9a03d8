#[derive(talea::Metrics)]
struct Shop(talea::Counter);

fn main() {}
