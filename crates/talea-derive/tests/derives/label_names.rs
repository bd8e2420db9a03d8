#[derive(talea::Labels)]
struct Twice {
    gift: bool,
    #[label(rename = "gift")]
    present: bool,
}

#[derive(talea::Labels)]
struct Accented {
    größe: u32,
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

#[derive(talea::Labels)]
struct Quantile {
    quantile: u32,
}

#[derive(talea::Labels)]
struct Internal {
    __name: u32,
}

#[derive(talea::Labels)]
struct Underscored {
    _name: u32,
}

#[derive(talea::Labels)]
struct Empty {
    #[label(rename = "")]
    name: u32,
}

fn main() {}
