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

#[derive(Metrics)]
struct PrefixedMetric {
    /// Orders.
    #[metric(limit = 10)]
    #[metrics(prefix = "shop")]
    orders: Counter,
}

#[derive(Metrics)]
struct Unprefixed {
    #[metrics(prefix = "_read")]
    read: Misspelt,
}

#[derive(Metrics)]
struct MisspeltOnAField {
    #[metrics(prefx = "read")]
    read: Misspelt,
}

#[derive(Metrics)]
struct Merged {
    #[metric(nested)]
    read: Misspelt,
    #[metric(nested)]
    write: Misspelt,
}

#[derive(Metrics)]
struct MergedByPrefix {
    #[metrics(prefix = "a")]
    read: Misspelt,
    #[metric(nested)]
    #[metrics(prefix = "a")]
    write: Misspelt,
}

fn main() {}
