use talea::{Counter, Metrics};

#[derive(Metrics)]
enum Listed {
    Orders,
}

#[derive(Metrics)]
struct Typed<T> {
    /// Orders.
    orders: T,
}

#[derive(Metrics)]
struct Unexplained {
    orders: Counter,
}

fn main() {}
