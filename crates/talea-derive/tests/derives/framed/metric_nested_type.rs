#[derive(talea::Metrics)]
struct Shop {
    #[metric(nested)]
    orders: talea::Counter,
}

fn main() {}
