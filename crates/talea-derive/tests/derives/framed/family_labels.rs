#[derive(talea::Metrics)]
struct Shop {
    /// Orders.
    orders: talea::Family<String, talea::Counter>,
}

fn main() {}
