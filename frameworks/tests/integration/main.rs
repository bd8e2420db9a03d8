//! Frameworks that the workspace does not depend on, each by the table of cases that actix-web passes there too.

#[path = "../../../crates/talea-http/tests/integration/cases/framework.rs"]
mod framework;
#[path = "../../../crates/talea-http/tests/integration/support/wait.rs"]
mod wait;

mod documents;
mod lambda;
mod poem;
mod pools;
mod rocket;
mod salvo;
mod warp;

/// Where the table of cases looks for it.
mod support {
    pub(crate) use crate::wait;
}

/// Panics, without the backtraces that the hook would print by the thousand.
fn panics() -> ! {
    std::panic::resume_unwind(Box::new("on purpose"))
}
