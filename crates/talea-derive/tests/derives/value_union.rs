#[derive(talea::LabelValue)]
union Bits {
    word: u32,
}

fn main() {}
