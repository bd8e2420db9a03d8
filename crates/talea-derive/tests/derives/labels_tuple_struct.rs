#[derive(talea::Labels)]
struct Sale<'a>(&'a str);

fn main() {}
