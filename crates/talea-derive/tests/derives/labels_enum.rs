#[derive(talea::Labels)]
enum Method {
    Card,
}

fn main() {}
