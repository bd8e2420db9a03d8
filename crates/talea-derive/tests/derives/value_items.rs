use talea::LabelValue;

#[derive(LabelValue)]
struct Method {
    card: bool,
}

#[derive(LabelValue)]
enum Numbered<const N: usize> {
    Card,
}

#[derive(LabelValue)]
enum Filled {
    Card,
    Transfer { bank: String },
}

#[derive(LabelValue)]
enum Twice {
    Card,
    #[label(rename = "card")]
    DebitCard,
}

fn main() {}
