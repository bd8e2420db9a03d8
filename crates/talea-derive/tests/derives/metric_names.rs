use talea::{Counter, Metrics};

#[derive(Metrics)]
struct Twice {
    /// Orders.
    orders: Counter,
    /// Returns.
    #[metric(name = "orders")]
    returns: Counter,
}

#[derive(Metrics)]
struct Dashed {
    /// Orders.
    #[metric(name = "orders-accepted")]
    orders: Counter,
}

#[derive(Metrics)]
struct Reserved {
    /// Orders.
    __orders: Counter,
}

#[derive(Metrics)]
#[metrics(prefix = "shop")]
struct Empty {
    /// Orders.
    #[metric(name = "")]
    orders: Counter,
}

#[derive(Metrics)]
#[metrics(prefix = "_shop")]
struct Hidden {
    /// Orders.
    orders: Counter,
}

fn main() {}
