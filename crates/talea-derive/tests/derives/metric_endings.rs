use talea::{Counter, Metrics};

#[derive(Metrics)]
struct Bucket {
    /// Orders.
    order_bucket: Counter,
}

#[derive(Metrics)]
struct Count {
    /// Orders.
    order_count: Counter,
}

#[derive(Metrics)]
struct Sum {
    /// Orders.
    order_sum: Counter,
}

#[derive(Metrics)]
struct Created {
    /// Orders.
    orders_created: Counter,
}

#[derive(Metrics)]
#[metrics(prefix = "order")]
struct Info {
    /// Orders.
    info: Counter,
}

fn main() {}
