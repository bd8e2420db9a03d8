#[derive(talea::LabelValue)]
enum Method<const N: usize> {
    Card,
}

fn main() {}
