#[derive(talea::Metrics)]
struct Typed<T> {
    /// Orders.
    orders: T,
}

#[derive(talea::Metrics)]
struct Counted<const N: usize> {
    /// Orders.
    orders: talea::Counter,
}

fn main() {}
