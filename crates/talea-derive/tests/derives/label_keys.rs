#[derive(talea::Labels)]
struct Unknown {
    #[label(renam = "host")]
    address: u32,
}

#[derive(talea::Labels)]
struct Twice {
    #[label(rename = "host", rename = "peer")]
    address: u32,
}

#[derive(talea::Labels)]
#[label(rename = "host")]
struct Outside {
    address: u32,
}

fn main() {}
