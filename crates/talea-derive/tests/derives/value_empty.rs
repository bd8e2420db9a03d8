#[derive(talea::LabelValue)]
enum Never {}

fn main() {}
