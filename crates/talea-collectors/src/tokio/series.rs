//! One series for each runtime.

use talea::{Error, Family, Labels, Metric, Opts, Registry};

#[derive(Labels)]
struct Of<'a> {
    runtime: &'a str,
}

/// Finds or makes the series of the runtime `name` in a family `metric`. It never goes:
/// a runtime that had nothing to do for an hour is still there.
pub(super) fn series<M: Metric + Clone>(
    registry: &Registry,
    opts: Opts<'_>,
    metric: &str,
    name: &str,
) -> Result<M, Error> {
    let family: Family<Of<'static>, M> = registry.register(opts.expires_after(None))?;
    match family.try_with(Of { runtime: name }) {
        Ok(found) => Ok(found.keep()),
        Err(refused) => Err(Error::Register {
            name: metric.to_owned(),
            reason: format!("there is no room for the runtime {name:?}: {refused}"),
        }),
    }
}
