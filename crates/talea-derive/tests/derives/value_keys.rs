#[derive(talea::LabelValue)]
#[label(rename_all = "Title Case")]
enum Cased {
    Card,
}

#[derive(talea::LabelValue)]
#[label(rename = "x")]
enum Renamed {
    Card,
}

#[derive(talea::LabelValue)]
enum Displayed {
    #[label(display)]
    Card,
}

fn main() {}
