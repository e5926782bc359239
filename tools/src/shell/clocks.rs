//! Clocks of an operating point, set for as long as a command runs (`--set-clocks`).

use std::{
    path::Path,
    sync::{Mutex, PoisonError},
};

use socbfs_boards::board::OperatingPoint;

use super::{Failure, results};
use crate::{
    board::clusters,
    sweep::{ClockError, Clocks, Turn, domains},
};

/// What the command has set. If it ends in any other way than by [`put_back`], the process that [`Clocks`] has started puts it back.
static SET: Mutex<Option<Clocks>> = Mutex::new(None);

/// Sets the clocks of `point` on the machine below `root`.
pub(super) fn set(root: &Path, point: &OperatingPoint) -> Result<(), Failure> {
    let mut found = domains(root, &clusters(root));
    found.retain(|domain| point.clocks_khz.contains_key(&domain.name));
    if let Some(name) = point.clocks_khz.keys().find(|name| found.iter().all(|domain| domain.name != **name)) {
        return Err(Failure::new(format!("this machine has no clock {name} that can be set")).cure("omit --set-clocks"));
    }
    let set = || {
        let clocks = Clocks::keep(Turn::take(root)?, &found, results())?;
        clocks.set(&point.clocks_khz)?;
        Ok(clocks)
    };
    let set = set().map_err(|error: ClockError| {
        let is_closed = matches!(error, ClockError::Closed { .. });
        let cure = if is_closed { "run the same command with sudo, or omit --set-clocks" } else { "omit --set-clocks" };
        Failure::because("", &error).cure(cure)
    })?;
    *SET.lock().unwrap_or_else(PoisonError::into_inner) = Some(set);
    Ok(())
}

/// Puts the clocks back that the command has set.
pub(crate) fn put_back() -> Result<(), Failure> {
    let Some(clocks) = SET.lock().unwrap_or_else(PoisonError::into_inner).take() else { return Ok(()) };
    clocks.put_back().map_err(|error| Failure::because("", &error).cure("write it into the file as root, or restart the machine"))
}
