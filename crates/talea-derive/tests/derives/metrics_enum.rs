#[derive(talea::Metrics)]
enum Shop {
    Orders,
}

fn main() {}
