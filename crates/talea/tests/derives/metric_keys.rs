use talea::{Counter, Metrics};

#[derive(Metrics)]
struct Unknown {
    /// Orders.
    #[metric(bucket = [1.0])]
    orders: Counter,
}

#[derive(Metrics)]
struct Twice {
    /// Orders.
    #[metric(limit = 10)]
    #[metric(limit = 20)]
    orders: Counter,
}

#[derive(Metrics)]
struct Both {
    /// Stock.
    #[metric(nested, limit = 10)]
    stock: Unknown,
}

#[derive(Metrics)]
#[metrics(prefx = "shop")]
struct Misspelt {
    /// Orders.
    orders: Counter,
}

#[derive(Metrics)]
#[metric(name = "shop")]
struct Outside {
    /// Orders.
    orders: Counter,
}

fn main() {}
