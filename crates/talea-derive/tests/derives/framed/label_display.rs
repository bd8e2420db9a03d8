struct Address;

#[derive(talea::Labels)]
struct Call {
    #[label(display)]
    address: Address,
}

fn main() {}
