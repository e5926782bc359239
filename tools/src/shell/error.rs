//! Errors as the user sees them. The library returns typed errors; the command line adds the context once, here.

use std::{error::Error, io};

use socbfs::{files, words::with_causes};
use socbfs_boards::runtime::RuntimeError;

/// Why a command ended without success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Usage, input or device: exit code 2.
    Error {
        /// What was being done, with the causes.
        message: String,
        /// What the user can do about it.
        cure: Option<String>,
    },
    /// A result failed validation: exit code 1. The details have already been printed.
    Invalid,
    /// The reader of standard output has gone, which is not an error: exit code 0.
    BrokenPipe,
    /// Ends with this exit code. The reason has already been printed, by this program or by the command that it ran.
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
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Error { message: message.into(), cure: None }
    }

    /// An error with its causes. If `context` is empty, the message begins with the text of `error`. If a cause is that there is no room
    /// for an output, adds the cure.
    pub(crate) fn because(context: &str, error: &(dyn Error + 'static)) -> Self {
        let message = with_causes(context, error);
        let mut causes = std::iter::successors(Some(error), |&error| error.source());
        let cure = causes.find_map(|cause| files::write_cure(cause.downcast_ref::<io::Error>()?));
        // Some errors of the library name it themselves.
        let cure = cure.filter(|cure| !message.contains(cure)).map(str::to_owned);
        Self::Error { message, cure }
    }

    /// Adds what the user can do about it.
    pub(crate) fn cure(self, cure: impl Into<String>) -> Self {
        match self {
            Self::Error { message, .. } => Self::Error { message, cure: Some(cure.into()) },
            other => other,
        }
    }

    /// As [`Failure::cure`], if there is something that the user can do.
    fn maybe_cure(self, cure: Option<impl Into<String>>) -> Self {
        match cure {
            Some(cure) => self.cure(cure),
            None => self,
        }
    }

    /// As [`Failure::cure`], unless there is a cure already.
    pub(crate) fn or_cure(self, cure: &str) -> Self {
        if matches!(self, Self::Error { cure: Some(_), .. }) { self } else { self.cure(cure) }
    }

    /// Replaces the name `from` of an option by `to`, its name in this command.
    pub(crate) fn renamed(self, from: &str, to: &str) -> Self {
        match self {
            Self::Error { message, cure } => {
                Self::Error { message: message.replace(from, to), cure: cure.map(|cure| cure.replace(from, to)) }
            }
            other => other,
        }
    }

    /// Puts `context` before the message.
    #[cfg(feature = "mpi")]
    pub(crate) fn context(self, context: &str) -> Self {
        match self {
            Self::Error { message, cure } => Self::Error { message: format!("{context}: {message}"), cure },
            other => other,
        }
    }

    /// The failure for an error of writing to standard output.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::BrokenPipe;
        }
        Self::because("can't write to standard output", error)
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::BrokenPipe => 0,
            Self::Invalid => 1,
            Self::Command(code) => *code,
            Self::Error { .. } => 2,
        }
    }
}

/// Conversions of errors whose text needs neither context nor cure.
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
    socbfs::search::SearchError,
    socbfs_cluster::ClusterError,
    crate::calibrate::ComparisonError,
    crate::calibrate::PartialError,
    socbfs_boards::board::CpuListError,
    socbfs_policy::PolicyError,
    crate::report::ArrayError,
    crate::bench::MeasureError,
    crate::bench::EnergyError,
    crate::train::RecordsError,
    socbfs_io::InputError,
    socbfs_io::validate::ValidateError,
);

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Self {
        Self::because("", &error).maybe_cure(error.cure())
    }
}

impl From<crate::maps::MapError> for Failure {
    fn from(error: crate::maps::MapError) -> Self {
        Self::because("", &error).cure(error.cure())
    }
}

impl From<crate::bench::RecordError> for Failure {
    fn from(error: crate::bench::RecordError) -> Self {
        Self::because("", &error).maybe_cure(error.cure())
    }
}

impl From<crate::board::TuneError> for Failure {
    fn from(error: crate::board::TuneError) -> Self {
        match error {
            crate::board::TuneError::Runtime(error) => error.into(),
            error => Self::because("", &error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("no graph")]
    struct Outer(#[source] io::Error);

    #[test]
    fn causes_are_joined_in_one_line() {
        let failure = Failure::because("reading a.el", &Outer(io::Error::other("disk on fire"))).cure("use water");
        let Failure::Error { message, cure } = &failure else { panic!("{failure:?}") };
        assert_eq!(message, "reading a.el: no graph: disk on fire");
        assert_eq!(cure.as_deref(), Some("use water"));
        assert_eq!(failure.code(), 2);
    }

    #[test]
    fn a_broken_pipe_is_not_an_error() {
        assert_eq!(Failure::stdout(&io::ErrorKind::BrokenPipe.into()).code(), 0);
        assert_eq!(Failure::stdout(&io::ErrorKind::StorageFull.into()).code(), 2);
        assert_eq!(Failure::Invalid.code(), 1);
    }
}
