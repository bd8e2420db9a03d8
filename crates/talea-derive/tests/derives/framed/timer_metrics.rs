use talea::{Bytes, Counter, Family, Histogram, Labels, Seconds, Summary};

#[derive(Labels)]
struct By<'a> {
    outcome: &'a str,
}

fn timers(
    sizes: &Family<By<'static>, Histogram<Bytes>>,
    size: &Histogram<Bytes>,
    calls: &Family<By<'static>, Counter>,
) {
    sizes.with(By { outcome: "paid" }).start_timer();
    sizes.start_timer(By { outcome: "paid" });
    size.start_timer();
    calls.with(By { outcome: "paid" }).observe_closure(|| ());
}

fn ends(times: &Family<By<'static>, Histogram<Seconds>>, summary: &Summary<Seconds>) {
    let timer = times.with(By { outcome: "aborted" }).start_timer();
    timer.stop_with(By { outcome: "paid" });
    let _ = summary.start_timer().stop_with_exemplar(&[("trace_id", "7")]);
}

fn main() {}
