#[derive(talea::Metrics)]
struct Shop;

fn main() {}
