#[derive(talea::LabelValue)]
enum Method {
    Card,
    #[label(rename = "card")]
    DebitCard,
}

fn main() {}
