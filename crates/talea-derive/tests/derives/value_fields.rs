#[derive(talea::LabelValue)]
enum Method {
    Card,
    Transfer { bank: String },
}

fn main() {}
