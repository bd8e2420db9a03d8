#[derive(talea::Labels)]
struct Twice {
    gift: bool,
    #[label(rename = "gift")]
    present: bool,
}

#[derive(talea::Labels)]
struct Dashed {
    #[label(rename = "status-class")]
    class: u32,
}

#[derive(talea::Labels)]
struct Threshold {
    le: u32,
}

fn main() {}
