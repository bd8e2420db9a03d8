//! Sets the constant labels of a registry.

use std::sync::PoisonError;

use talea_region::FamilySpec;

use super::Registry;
use crate::error::Error;
use crate::snapshot::constant_labels::{KIND, NAME, fault, text_of};

impl Registry {
    /// Sets labels that pages show every series of this registry with: its region, its version, its
    /// shard. A process calls it once, best before it registers anything.
    ///
    /// An agent outside shows them too, also after the process died. Of processes that share a
    /// registry and set different labels, the labels of the newest living process are shown, for all series. So
    /// a label by which processes differ belongs into an [`Info`](crate::Info) or a family.
    ///
    /// [`Snapshot`](crate::Snapshot)s are queried without these labels. They are stored once, and
    /// cost updates and look-ups nothing.
    ///
    /// ```
    /// # use talea::{Counter, Opts, Registry};
    /// let registry = Registry::for_test()?;
    /// registry.set_constant_labels(&[("zone", "eu-1"), ("version", "1.4.0")])?;
    /// let orders: Counter = registry.register(Opts::new("orders", "Orders accepted."))?;
    /// orders.inc();
    /// let snapshot = registry.snapshot();
    /// assert!(snapshot.to_text().contains("orders_total{zone=\"eu-1\",version=\"1.4.0\"} 1\n"));
    /// assert_eq!(snapshot.value("orders_total", &[]), Some(1.0));
    /// # Ok::<(), talea::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A name is not valid for a label, is given twice, is one that Talea writes itself (`le`,
    /// `quantile`, `pid`, …), or is a label of a metric that this process registered; the process set
    /// other constant labels before; the region is full. Metrics of other processes that have a label
    /// of such a name are shown without the constant ones, and so are those whose labels are named as they
    /// are recorded (facts of an info, calls of the `metrics` facade).
    pub fn set_constant_labels(&self, labels: &[(&str, &str)]) -> Result<(), Error> {
        let refused = |reason: String| Error::ConstantLabels { reason };
        let names = || labels.iter().map(|(name, _)| *name);
        fault(names()).map_or(Ok(()), |reason| Err(refused(reason)))?;
        // Held until the names are known, so that no metric with such a label is registered
        // meanwhile.
        let mut bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((label, metric)) = names().find_map(|name| bounds.label_owner(name)) {
            return Err(refused(format!(
                "the metric {metric:?} has a label {label:?} of its own; rename one of the two"
            )));
        }
        let text = text_of(labels.iter().copied());
        let spec = FamilySpec {
            name: NAME.as_bytes(),
            definition: text.as_bytes(),
            kind: KIND,
            ..FamilySpec::default()
        };
        self.region.family(spec).map_err(|error| match error {
            talea_region::FamilyError::Full => {
                refused("the region is full; create it with more bytes".to_owned())
            }
            talea_region::FamilyError::Conflict => {
                refused("this process has set others already; set all of them at once".to_owned())
            }
            other => refused(other.to_string()),
        })?;
        bounds.set_constant_labels(names());
        Ok(())
    }
}
