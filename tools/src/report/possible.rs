//! Checks a recorded run for what no run can have: such a record was edited, or put together from several.

use crate::record::Record;

/// Checks the times and the number of roots of `run`. The error is what is impossible.
pub(super) fn possible(run: &Record) -> Result<(), String> {
    for root in &run.roots {
        let number = root.root;
        let Some(seconds) = root.seconds else {
            if run.summary.is_some() {
                return Err(format!("root {number} has no time, but the run has a summary"));
            }
            continue;
        };
        if !(seconds.is_finite() && seconds > 0.0) {
            return Err(format!("root {number} has a time of {seconds} s, and a search takes more than 0 s"));
        }
        if let Some(mapping) = root.mapping_seconds.filter(|mapping| !(0.0..=seconds).contains(mapping)) {
            return Err(format!("root {number} has {mapping} s of mapping in a search of {seconds} s"));
        }
    }
    let count = run.roots.len();
    match &run.summary {
        Some(summary) if summary.roots != count => Err(format!("its summary is of {} roots, and its list has {count}", summary.roots)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::record;

    #[test]
    fn only_records_that_a_run_can_have_are_possible() {
        let check = |edit: &dyn Fn(&mut Record)| {
            let mut run = record(&[0.001, 0.002]);
            edit(&mut run);
            possible(&run)
        };
        assert_eq!(check(&|_| ()), Ok(()));
        // A run that failed validation has no summary, and a root without a time.
        let failed = |run: &mut Record| (run.summary, run.roots[1].seconds) = (None, None);
        assert_eq!(check(&failed), Ok(()));
        let refused = |edit: &dyn Fn(&mut Record), reason: &str| assert_eq!(check(edit), Err(reason.to_owned()));
        refused(&|run| run.roots[1].seconds = Some(-1.0), "root 1 has a time of -1 s, and a search takes more than 0 s");
        refused(&|run| run.roots[0].seconds = Some(0.0), "root 0 has a time of 0 s, and a search takes more than 0 s");
        refused(&|run| run.roots[0].seconds = None, "root 0 has no time, but the run has a summary");
        refused(&|run| run.roots[0].mapping_seconds = Some(1.0), "root 0 has 1 s of mapping in a search of 0.001 s");
        refused(&|run| run.roots.clear(), "its summary is of 2 roots, and its list has 0");
    }
}
