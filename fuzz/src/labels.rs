//! Any label values make a series of their own, which a snapshot finds by them
//! and a scraper reads back as they were.

use std::sync::{Mutex, PoisonError};

use talea::{Config, Count, Counter, Family, Histogram, Labels, Opts, Registry};

#[derive(Labels)]
struct Three<'a> {
    first: &'a str,
    second: Option<&'a str>,
    number: Option<i64>,
}

/// A registry stays mapped until the process ends, by design. So many inputs
/// share one: their series live beside each other, as in a service.
struct Shop {
    registry: Registry,
    sales: Family<Three<'static>, Counter>,
    sizes: Family<Three<'static>, Histogram<Count>>,
    inputs: u32,
    bytes: usize,
}

impl Shop {
    const INPUTS: u32 = 50;
    /// So many bytes of input fit a registry, whatever has to be escaped.
    const BYTES: usize = 40_000;

    fn new() -> Self {
        // Planes would take room that is better used for text.
        let registry = Registry::with_config(Config { planes: 1, ..Config::with_len(1 << 20) });
        let registry = registry.unwrap();
        let sales = registry.register(Opts::new("sales", "Sales.")).unwrap();
        let sizes = Opts::new("sizes", "Sizes.").buckets(&[10.0]);
        let sizes = registry.register(sizes).unwrap();
        Self { registry, sales, sizes, inputs: 0, bytes: 0 }
    }
}

static SHOP: Mutex<Option<Shop>> = Mutex::new(None);

pub(crate) fn run(input: &[u8]) {
    let [first, second, number] = parts(input);
    let mut kept = SHOP.lock().unwrap_or_else(PoisonError::into_inner);
    let shop = kept.take_if(|shop| shop.inputs < Shop::INPUTS).unwrap_or_else(Shop::new);
    let (inputs, bytes) = (shop.inputs + 1, shop.bytes + input.len());
    let shop = kept.insert(Shop { inputs, bytes, ..shop });

    let first = String::from_utf8_lossy(first);
    let second = String::from_utf8_lossy(second);
    // Text that says it is missing is the same series as missing text.
    let second = Some(second.as_ref()).filter(|text| !text.is_empty() || first.is_empty());
    let number = number.try_into().ok().map(i64::from_le_bytes);
    let labels = || Three { first: &first, second, number };
    let shown = number.map_or(String::new(), |number| number.to_string());
    let wanted = [first.as_ref(), second.unwrap_or(""), &shown];
    let pairs: Vec<(&str, &str)> = ["first", "second", "number"].into_iter().zip(wanted).collect();

    let value = |name| shop.registry.snapshot().value(name, &pairs).unwrap_or(0.0);
    let before = value("sales_total");
    let dropped = shop.sales.dropped() + shop.sizes.dropped();
    shop.sales.with(labels()).inc();
    shop.sizes.with(labels()).observe(3);
    if shop.sales.dropped() + shop.sizes.dropped() > dropped {
        assert!(shop.bytes > Shop::BYTES, "a text that there is room for was refused");
        *kept = None;
        return;
    }
    assert_eq!(value("sales_total"), before + 1.0);
    assert_eq!(shop.sales.with(labels()).get() as f64, before + 1.0);

    let text = shop.registry.snapshot().to_text();
    let samples = talea_parse::text(&text).unwrap();
    let of = |name: &str, also: Option<(&str, &str)>| -> Vec<f64> {
        let found = samples.iter().filter(|sample| {
            let labels = sample.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            sample.name == name && labels.eq(pairs.iter().copied().chain(also))
        });
        found.map(|sample| sample.value).collect()
    };
    assert_eq!(of("sales_total", None), [before + 1.0]);
    let sizes = of("sizes_count", None);
    assert_eq!(sizes, [before + 1.0]);
    assert_eq!(of("sizes_bucket", Some(("le", "10.0"))), sizes);
    assert_eq!(of("sizes_bucket", Some(("le", "+Inf"))), sizes);
}

/// An input's three parts: its first four bytes are the lengths of the first two.
fn parts(input: &[u8]) -> [&[u8]; 3] {
    let Some((&[a, b, c, d], rest)) = input.split_first_chunk() else { return [input, b"", b""] };
    let [first, second] = [[a, b], [c, d]].map(|len| usize::from(u16::from_le_bytes(len)));
    let (first, rest) = rest.split_at(rest.len().min(first));
    let (second, third) = rest.split_at(rest.len().min(second));
    [first, second, third]
}
