#[derive(talea::Labels)]
enum Listed {
    Card,
}

#[derive(talea::Labels)]
struct Typed<T> {
    method: T,
}

fn main() {}
