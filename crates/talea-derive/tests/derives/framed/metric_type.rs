#[derive(talea::Metrics)]
struct Shop {
    /// Orders.
    orders: String,
}

fn main() {}
