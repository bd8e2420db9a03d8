#[derive(talea::Labels)]
union Bits {
    word: u32,
}

fn main() {}
