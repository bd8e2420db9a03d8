#[derive(talea::Labels)]
struct Nothing;

fn main() {}
