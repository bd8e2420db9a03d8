#[derive(talea::LabelValue)]
struct Method {
    card: bool,
}

fn main() {}
