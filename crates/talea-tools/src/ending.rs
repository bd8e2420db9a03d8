//! How commands end.

use std::process::ExitCode;

use talea_load::stop::INTERRUPTED;
use talea_study::compare::Finding;

/// How a command ended that could be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing failed. Exit status 0.
    Clean,
    /// A request failed, or the two sides disagree. Exit status 1.
    Failures,
    /// Nothing failed, and a condition is not decided. Exit status 3.
    NotDecided,
    /// A signal stopped it. Exit status 130.
    Interrupted,
    /// A command that it ran ended. Exit status of that command.
    Code(u8),
}

impl Ending {
    /// The ending of a load of which nothing failed if it is `clean`, and whose conditions came to this.
    pub(crate) fn of(clean: bool, finding: Finding) -> Self {
        match finding {
            _ if !clean => Self::Failures,
            Finding::Failed | Finding::Unknown => Self::Failures,
            Finding::NotDecided => Self::NotDecided,
            Finding::Passed => Self::Clean,
        }
    }
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Clean => ExitCode::SUCCESS,
            Ending::Failures => ExitCode::from(1),
            Ending::NotDecided => ExitCode::from(3),
            Ending::Interrupted => ExitCode::from(INTERRUPTED),
            Ending::Code(code) => ExitCode::from(code),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_clean_and_passed_ends_well() {
        for (clean, finding, ending) in [
            (true, Finding::Passed, Ending::Clean),
            (true, Finding::NotDecided, Ending::NotDecided),
            (true, Finding::Failed, Ending::Failures),
            (true, Finding::Unknown, Ending::Failures),
            (false, Finding::Passed, Ending::Failures),
            (false, Finding::NotDecided, Ending::Failures),
        ] {
            assert_eq!(Ending::of(clean, finding), ending, "{clean}, {finding}");
        }
    }
}
