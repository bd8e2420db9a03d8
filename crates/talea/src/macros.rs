//! The macros: derives, and attributes of statics and functions.

/// Registers a static metric or family when the program's [default registry] is first used, or when
/// [`install_statics`] is called. Its name is the name of the static in small letters, its help the doc
/// comment.
///
/// ```standalone_crate
/// use talea::{Counter, Family, Histogram, Labels, Seconds};
///
/// /// Requests that were answered.
/// #[talea::register]
/// static HITS: Counter = Counter::new();
///
/// /// Time to price a basket.
/// #[talea::register(name = "shop_pricing", buckets = [0.001, 0.01, 0.1])]
/// static PRICING: Histogram<Seconds> = Histogram::new();
///
/// #[derive(Labels)]
/// struct Sale<'a> { country: &'a str }
///
/// /// Orders accepted.
/// #[talea::register]
/// static ORDERS: Family<Sale<'static>, Counter> = Family::new();
///
/// let registry = talea::default_registry()?;
/// HITS.inc();
/// ORDERS.with(Sale { country: "pe" }).inc();
/// assert_eq!(registry.snapshot().value("hits_total", &[]), Some(1.0));
/// # Ok::<(), talea::Error>(())
/// ```
///
/// The options are the same as in `#[metric(…)]` on a field of [`Metrics`](derive@Metrics). The statics of all crates that
/// are linked into the program are registered, so this is for programs; a library has a set by
/// `#[derive(Metrics)]`, so that its user chooses the registry and the prefix.
///
/// Cost: an entry of a linked list before `main`; then the registration.
///
/// Errors while compiling: as of [`Metrics`](derive@Metrics); on anything but a static. Two statics of one name are an
/// error when they are registered.
///
/// [default registry]: default_registry
/// [`install_statics`]: Registry::install_statics
pub use talea_derive::register;

/// Times each call of a function, or each run of an `async` one from its first poll on, by a timer of
/// the metric: it observes on every way out, errors, panics and dropped futures among them.
///
/// The metric is any expression that has `start_timer()`: a `Histogram<Seconds>`, or a series of a
/// family, `SHOP.pricing.with(By { provider })`. It is evaluated at the beginning, and may name the
/// function's arguments.
///
/// ```
/// use talea::{Histogram, Seconds};
///
/// /// Time to price a basket.
/// #[talea::register]
/// static PRICING: Histogram<Seconds> = Histogram::new();
///
/// #[talea::timed(PRICING)]
/// async fn price(items: u64) -> Result<u64, std::io::Error> {
///     Ok(items * 1250)
/// }
/// # let _ = price(1);
/// ```
///
/// Cost: the timer; no allocation. A function that returns a future and is not `async` itself
/// (also one that another macro rewrites so) is timed until it has returned the future.
pub use talea_derive::timed;

/// Counts each call of a function: `#[talea::counted(calls, error = failures)]`. `calls` counts when a
/// call begins, or at the first poll if it is `async`; `failures` when it returns an `Err`. Both are
/// expressions that have `inc()`: a counter, or a series of a family. `failures`, which may be left
/// out, is evaluated after the body and sees only those arguments that the body does not take.
///
/// ```standalone_crate
/// use talea::Counter;
///
/// /// Payments begun.
/// #[talea::register]
/// static PAYMENTS: Counter = Counter::new();
/// /// Payments that failed.
/// #[talea::register]
/// static PAYMENTS_FAILED: Counter = Counter::new();
///
/// #[talea::counted(PAYMENTS, error = PAYMENTS_FAILED)]
/// fn pay(cents: u64) -> Result<(), &'static str> {
///     if cents == 0 { Err("nothing to pay") } else { Ok(()) }
/// }
///
/// let registry = talea::default_registry()?;
/// assert!(pay(0).is_err() && pay(5).is_ok());
/// let snapshot = registry.snapshot();
/// assert_eq!(snapshot.value("payments_total", &[]), Some(2.0));
/// assert_eq!(snapshot.value("payments_failed_total", &[]), Some(1.0));
/// # Ok::<(), talea::Error>(())
/// ```
///
/// A panic or a future that is dropped is a call, and no failure. Cost: the adds.
pub use talea_derive::counted;

pub use talea_derive::{LabelValue, Labels, Metrics};

/// The type of what a function returns whose errors `#[counted(…, error = …)]` counts.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no `Result`, so there are no errors to count",
    label = "`error = …` counts each `Err` that the function returns",
    note = "leave `error = …` out, or return a `Result`"
)]
pub trait Outcome {
    /// Whether the function has failed.
    fn is_error(&self) -> bool;
}

impl<T, E> Outcome for Result<T, E> {
    #[inline]
    fn is_error(&self) -> bool {
        self.is_err()
    }
}
