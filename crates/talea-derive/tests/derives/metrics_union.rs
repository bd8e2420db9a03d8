#[derive(talea::Metrics)]
union Shop {
    word: u32,
}

fn main() {}
