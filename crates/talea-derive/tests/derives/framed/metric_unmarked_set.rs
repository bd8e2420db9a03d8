#[derive(talea::Metrics)]
struct Stock {
    /// Things in store.
    things: talea::Gauge,
}

#[derive(talea::Metrics)]
struct Shop {
    /// Stock.
    stock: Stock,
}

fn main() {}
