#[derive(talea::Labels)]
struct Typed<T> {
    method: T,
}

#[derive(talea::Labels)]
struct Sized<const N: usize> {
    gift: bool,
}

fn main() {}
