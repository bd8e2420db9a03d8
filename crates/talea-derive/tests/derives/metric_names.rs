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
struct Underscored {
    /// Orders.
    #[metric(name = "_orders")]
    orders: Counter,
}

#[derive(Metrics)]
#[metrics(prefix = "_shop")]
struct Hidden {
    /// Orders.
    orders: Counter,
}

#[derive(Metrics)]
#[metrics(prefix = "")]
struct Unprefixed {
    /// Orders.
    orders: Counter,
}

#[derive(Metrics)]
#[metrics(prefix = "my shop")]
struct Prefixed {
    /// Orders.
    orders: Counter,
}

fn main() {}
