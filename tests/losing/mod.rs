//! A device that is lost when a test says so.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]
#![allow(dead_code, reason = "not every crate needs everything")]

use std::sync::Arc;

use socbfs::opencl::{Device, Limits};

use crate::{
    implementations::{self, inside, losing_library, skipped},
    searches::devices,
};

pub const POCL: &str = "Portable Computing Language";

/// Runs `body` with a PoCL device and the path of a file. The device is lost N commands after a file with the number N is written, and is
/// back when the file is removed.
pub fn with_a_device_to_lose(module: &str, test: &str, body: impl Fn(&Arc<Device>, &str)) {
    with_a_device_that_continues_after_its_loss(module, test, None, body);
}

/// The same as [`with_a_device_to_lose`], but the device runs its pending kernels `delay_ms` milliseconds after its loss was reported.
pub fn with_a_device_that_continues_after_its_loss(module: &str, test: &str, delay_ms: Option<u64>, body: impl Fn(&Arc<Device>, &str)) {
    with_a_device_and(module, test, delay_ms, &[], body);
}

/// The same as [`with_a_device_to_lose`], but the loss is not reported: nothing ends any more, and calls that wait do not return. Each
/// kernel that has not begun then begins `delay_ms` milliseconds later. The report has a line for each call that waits and for each
/// mistake.
pub fn with_a_device_that_never_answers(module: &str, test: &str, delay_ms: u64, body: impl Fn(&Arc<Device>, &str)) {
    with_a_device_and(module, test, Some(delay_ms), &[("SOCBFS_TEST_HANG", "1"), ("SOCBFS_DEVICE_TIMEOUT", "")], body);
}

fn with_a_device_and(module: &str, test: &str, delay_ms: Option<u64>, more: &[(&str, &str)], body: impl Fn(&Arc<Device>, &str)) {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = losing_library(folder.path()) else {
        return skipped(test, "no C compiler, or no libOpenCL.so.1 to link to");
    };
    if implementations::device_of(test, POCL).is_none() {
        return;
    }
    let file = folder.path().join("after");
    let report = folder.path().join("report");
    let (lie, dropped) = (folder.path().join("lie"), folder.path().join("dropped"));
    let delay = delay_ms.unwrap_or(0).to_string();
    let variables = [
        ("SOCBFS_TEST_LIE_FILE", lie.to_str().unwrap()),
        ("SOCBFS_TEST_DROP_FILE", dropped.to_str().unwrap()),
        ("SOCBFS_TEST_LOSE_DELAY_MS", delay.as_str()),
        ("SOCBFS_TEST_LOSE_REPORT", report.to_str().unwrap()),
        ("OPENCL_DYLIB_PATH", library.to_str().unwrap()),
        ("SOCBFS_TEST_LOSE_FILE", file.to_str().unwrap()),
        ("SOCBFS_TEST_DEVICE", POCL),
    ];
    if inside(module, test, &[&variables, more].concat()) {
        let file = std::env::var("SOCBFS_TEST_LOSE_FILE").unwrap();
        let devices = devices(test, Limits::default());
        body(&devices.all[0], &file);
    }
}

/// Numbers of commands that still succeed: every one at the beginning, and some of the later ones.
pub fn points() -> impl Iterator<Item = u32> {
    (0..12).chain((12..).step_by(7))
}
