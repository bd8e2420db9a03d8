//! Claims about a region that programs in Rust and in C share.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

mod support;

use std::ptr::{null, null_mut};
use std::time::Duration;

use talea::{
    Bytes, Combine, Counter, FloatCounter, FloatGauge, Gauge, Histogram, Opts, Registry, Seconds,
    Summary, UpDownCounter,
};
use talea_ffi::{
    Combining, Family, FamilyOptions, Kind, Number, OpenOptions, Operation, Status, Text, Unit,
    talea_open, talea_record, talea_register,
};

fn text(text: &str) -> Text {
    Text { data: text.as_ptr().cast(), len: text.len() }
}

/// Options that are zero but for the size, a kind and a name.
fn options(kind: Kind, name: &str) -> FamilyOptions {
    // SAFETY: the fields are numbers and pointers.
    let zeros: FamilyOptions = unsafe { std::mem::zeroed() };
    let (size, kind) = (size_of::<FamilyOptions>(), kind as u32);
    FamilyOptions { size, kind, name: text(name), help: text("Help."), ..zeros }
}

#[test]
fn equal_definitions_in_rust_and_in_c_are_one_family() {
    let shm = support::shm();
    let path = shm.path().join("both.talea");
    let rust = Registry::open(&path).unwrap();
    let path = path.to_str().unwrap();
    let (size, path) = (size_of::<OpenOptions>(), text(path));
    let opening = OpenOptions { size, path, len: 0, series: 0, flags: 0, group: 0, lent_planes: 0 };
    let mut c = null();
    // SAFETY: the options and the place live until it returns.
    assert_eq!(unsafe { talea_open(&opening, &mut c, null_mut(), 0) }, Status::Ok);
    let register = |options: FamilyOptions| -> &Family {
        let mut family = null();
        // SAFETY: as above; a family stays.
        unsafe {
            let status = talea_register(c, &options, &mut family, null_mut(), 0);
            assert_eq!(status, Status::Ok);
            &*family
        }
    };
    let opts = |name| Opts::new(name, "Help.");
    let label = [text("method")];
    let labelled =
        |options| FamilyOptions { label_names: label.as_ptr(), label_count: 1, ..options };
    let value = [text("card")];

    let record = |options: FamilyOptions, values: &[Text], operation: Operation, number: Number| {
        let family = register(options);
        // SAFETY: the family stays, and the values live until the call returns.
        let status = unsafe {
            talea_record(family, values.as_ptr(), values.len(), operation as u32, number)
        };
        assert_eq!(status, Status::Ok);
    };
    let (add, set, observe) = (Operation::Add, Operation::Set, Operation::Observe);

    let all: Counter = rust.register(opts("all")).unwrap();
    all.add(2);
    record(options(Kind::Counter, "all"), &[], add, Number::unsigned(3));
    let busy: FloatCounter = rust.register(opts("busy")).unwrap();
    busy.add(0.5);
    record(options(Kind::FloatCounter, "busy"), &[], add, Number::double(0.25));
    let open: UpDownCounter = rust.register(opts("open")).unwrap();
    open.add(4);
    record(options(Kind::UpDownCounter, "open"), &[], add, Number::signed(1));
    let limit: FloatGauge = rust.register(opts("limit")).unwrap();
    limit.set(1.5);
    record(options(Kind::Gauge, "limit"), &[], set, Number::double(2.5));
    let longest: Gauge = rust.register(opts("longest").combine(Combine::Max)).unwrap();
    longest.set(7);
    let combining = Combining::Max as u32;
    let longest = FamilyOptions { combining, ..options(Kind::IntegerGauge, "longest") };
    record(longest, &[], set, Number::double(6.0));
    let orders = rust.family::<Counter>(opts("orders"), &["method"]).unwrap();
    orders.with_values(&["card"]).add(10);
    record(labelled(options(Kind::Counter, "orders")), &value, add, Number::unsigned(5));
    let pricing = rust.family::<Histogram<Seconds>>(opts("pricing"), &["method"]).unwrap();
    pricing.with_values(&["card"]).observe(Duration::from_millis(20));
    let unit = Unit::Seconds as u32;
    let pricing = FamilyOptions { unit, ..labelled(options(Kind::Histogram, "pricing")) };
    record(pricing, &value, observe, Number::double(0.03));
    let size: Summary<Bytes> = rust.register(opts("size")).unwrap();
    size.observe(100);
    let size = FamilyOptions { unit: Unit::Bytes as u32, ..options(Kind::Summary, "size") };
    record(size, &[], observe, Number::double(200.0));

    let snapshot = rust.snapshot();
    for (name, wanted) in
        [("all_total", 5.0), ("busy_total", 0.75), ("open", 5.0), ("limit", 2.5), ("longest", 7.0)]
    {
        snapshot.assert_value(name, &[], wanted);
    }
    let card = [("method", "card")];
    snapshot.assert_value("orders_total", &card, 15.0);
    let pricing = snapshot.expect_histogram("pricing_seconds", &card);
    assert_eq!((pricing.count(), pricing.sum()), (2, 0.05));
    let size = snapshot.expect_histogram("size_bytes", &[]);
    assert_eq!((size.count(), size.sum()), (2, 300.0));
}
