//! For tests: folders with files like those of a machine.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    channel::{Reading, Sink},
    source::Source,
    tree::SystemFiles,
    units::Watts,
};

/// A folder that is deleted at the end of the test.
pub(crate) struct Fixture(tempfile::TempDir);

impl Fixture {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn tree(&self) -> SystemFiles {
        SystemFiles::new(self.0.path())
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// Writes `text` into the file `path`, and makes the folders above it.
    pub(crate) fn file(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // The file is not replaced, so a sensor that holds it open reads the new value.
        fs::write(path, text).unwrap();
    }

    /// Writes several files of `folder`.
    pub(crate) fn files(&self, folder: &str, files: &[(&str, &str)]) {
        for (name, text) in files {
            self.file(&format!("{folder}/{name}"), text);
        }
    }

    /// Makes `path` a link to `target`.
    pub(crate) fn link(&self, path: &str, target: impl AsRef<Path>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }
}

/// All readings of one sample of `source`.
pub(crate) fn sample(source: &mut Source) -> Vec<(usize, Reading)> {
    let mut readings = Vec::new();
    let mut sink = |channel: usize, _: u64, reading: Reading| readings.push((channel, reading));
    source.sensor.as_mut().unwrap().sample(&mut sink as &mut dyn Sink);
    readings
}

/// The power in one sample of a source with one channel.
pub(crate) fn watts(source: &mut Source) -> f64 {
    match sample(source)[..] {
        [(0, Reading::Power(Watts(watts)))] => watts,
        ref other => panic!("{other:?}"),
    }
}
