//! Errors as the user sees them. Modules give typed errors; the context is added once, here, where the command knows it.

use std::{error::Error, io};

use crate::runtime::{RuntimeError, with_causes};

/// Why a command ended without success.
#[derive(Debug)]
pub(super) enum Failure {
    /// Usage, input or device: exit code 2.
    Error {
        /// What was being done, with the causes.
        message: String,
        /// What the user can do about it.
        cure: Option<String>,
    },
    /// A result failed validation: exit code 1. What there is to say has been printed.
    Invalid,
    /// The reader of standard output has gone: no error.
    BrokenPipe,
    /// A command that was run for the user ended with this exit code, and has said why itself.
    Command(u8),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Error { message, .. } => f.write_str(message),
            Self::Invalid => f.write_str("a result failed validation"),
            Self::Command(code) => write!(f, "the command ended with exit code {code}"),
            Self::BrokenPipe => f.write_str("standard output was closed"),
        }
    }
}

impl Failure {
    /// An error without a cause.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self::Error { message: message.into(), cure: None }
    }

    /// An error and what led to it. The text of `error` stands first where `context` is empty.
    pub(super) fn because(context: &str, error: &(dyn Error + 'static)) -> Self {
        Self::Error { message: with_causes(context, error), cure: None }
    }

    /// Adds what the user can do about it.
    pub(super) fn cure(self, cure: impl Into<String>) -> Self {
        match self {
            Self::Error { message, .. } => Self::Error { message, cure: Some(cure.into()) },
            other => other,
        }
    }

    /// Calls the option `from` by the name that it has in this command.
    pub(super) fn renamed(self, from: &str, to: &str) -> Self {
        match self {
            Self::Error { message, cure } => {
                Self::Error { message: message.replace(from, to), cure: cure.map(|cure| cure.replace(from, to)) }
            }
            other => other,
        }
    }

    /// Says where it went wrong.
    #[cfg(feature = "mpi")]
    pub(super) fn context(self, context: &str) -> Self {
        match self {
            Self::Error { message, cure } => Self::Error { message: format!("{context}: {message}"), cure },
            other => other,
        }
    }

    /// An error of standard output.
    pub(super) fn stdout(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::BrokenPipe;
        }
        Self::because("can't write to standard output", error)
    }

    /// The exit code.
    pub(super) fn code(&self) -> u8 {
        match self {
            Self::BrokenPipe => 0,
            Self::Invalid => 1,
            Self::Command(code) => *code,
            Self::Error { .. } => 2,
        }
    }
}

/// Errors that say everything themselves.
macro_rules! plain {
    ($($error:ty),+ $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::because("", &error)
            }
        })+
    };
}

plain!(
    crate::search::SearchError,
    crate::cluster::ClusterError,
    crate::calibrate::PartialError,
    crate::board::CpuListError,
    crate::policy::PolicyError,
    crate::report::ArrayError,
    crate::bench::MeasureError,
    crate::bench::EnergyError,
    crate::train::CollectError,
    crate::train::RecordsError,
    crate::input::InputError,
    crate::validate::ValidateError,
);

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Self {
        let failure = Self::because("", &error);
        match error.cure() {
            Some(cure) => failure.cure(cure),
            None => failure,
        }
    }
}

impl From<crate::bench::ReplayError> for Failure {
    fn from(error: crate::bench::ReplayError) -> Self {
        RuntimeError::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("no graph")]
    struct Outer(#[source] io::Error);

    #[test]
    fn causes_stand_in_one_line() {
        let failure = Failure::because("reading a.el", &Outer(io::Error::other("disk on fire"))).cure("use water");
        let Failure::Error { message, cure } = &failure else { panic!("{failure:?}") };
        assert_eq!(message, "reading a.el: no graph: disk on fire");
        assert_eq!(cure.as_deref(), Some("use water"));
        assert_eq!(failure.code(), 2);
    }

    #[test]
    fn a_broken_pipe_is_no_error() {
        assert_eq!(Failure::stdout(&io::ErrorKind::BrokenPipe.into()).code(), 0);
        assert_eq!(Failure::stdout(&io::ErrorKind::StorageFull.into()).code(), 2);
        assert_eq!(Failure::Invalid.code(), 1);
    }
}
