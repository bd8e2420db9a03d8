struct Address;

#[derive(talea::Labels)]
struct Call {
    address: Address,
}

fn main() {}
