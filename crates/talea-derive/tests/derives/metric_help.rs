#[derive(talea::Metrics)]
struct Shop {
    orders: talea::Counter,
}

fn main() {}
