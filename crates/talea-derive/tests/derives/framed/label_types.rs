struct Address;

#[derive(talea::Labels)]
struct Call {
    address: Address,
}

#[derive(talea::Labels)]
struct Displayed {
    #[label(display)]
    address: Address,
}

fn main() {}
