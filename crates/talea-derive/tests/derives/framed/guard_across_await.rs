use talea::{Counter, Family, Labels};

#[derive(Labels)]
struct By<'a> {
    outcome: &'a str,
}

fn spawn(_: impl Future<Output = ()> + Send) {}

fn count(calls: &'static Family<By<'static>, Counter>) {
    spawn(async {
        let guard = calls.with(By { outcome: "paid" });
        std::future::ready(()).await;
        guard.inc();
    });
}

fn main() {}
