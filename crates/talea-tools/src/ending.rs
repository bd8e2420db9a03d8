//! How commands end.

use std::process::ExitCode;

use talea_load::stop::INTERRUPTED;

/// How a command ended that could be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing failed. Exit status 0.
    Clean,
    /// A request failed, or the two sides disagree. Exit status 1.
    Failures,
    /// A signal stopped it. Exit status 130.
    Interrupted,
    /// A command that it ran ended. Exit status of that command.
    Code(u8),
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Clean => ExitCode::SUCCESS,
            Ending::Failures => ExitCode::from(1),
            Ending::Interrupted => ExitCode::from(INTERRUPTED),
            Ending::Code(code) => ExitCode::from(code),
        }
    }
}
