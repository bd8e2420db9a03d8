use talea::{Counter, Family, Gauge, Metrics};

#[derive(Metrics)]
struct Stock {
    /// Things in store.
    things: Gauge,
}

#[derive(Metrics)]
struct Unmarked {
    /// Stock.
    stock: Stock,
}

#[derive(Metrics)]
struct OfText {
    /// Orders.
    orders: String,
}

#[derive(Metrics)]
struct LabelledByText {
    /// Orders.
    orders: Family<String, Counter>,
}

#[derive(Metrics)]
struct Nested {
    #[metric(nested)]
    orders: Counter,
}

fn main() {}
