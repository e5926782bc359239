//! What a command has measured so far. It is published at the end, and also after an error or Ctrl-C. Each part is kept in a file when it
//! ends, so the same command continues there after a kill or a power cut.

use std::{
    fmt::Debug,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Instant, SystemTime},
};

use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use twox_hash::XxHash3_128;

use super::{Failure, Output, Outputs, Source, interrupt, progress, say, worse_of};
use crate::{
    calibrate::{Header, OTHER_BUILD, Partial},
    record::Environment,
};
use socbfs::words::{counted, with_causes};
use socbfs_boards::runtime::{self, CalibrationChoice, Runtime};

/// Writes a record to the outputs, and prints it.
type Publish<R> = Box<dyn Fn(&R, Outputs) -> Result<(), Failure> + Send>;

/// Prepares a record for its end: if it ends early, adds why parts are missing. Returns whether there is something to publish.
type Close<R> = Box<dyn Fn(&mut R, Option<&str>) -> bool + Send>;

/// A record that grows, and where it goes.
pub(crate) struct SoFar<R>(Arc<Mutex<State<R>>>);

pub(crate) struct State<R> {
    /// The record.
    pub(crate) record: R,
    outputs: Outputs,
    publish: Publish<R>,
    close: Close<R>,
    /// Where parts are kept.
    place: Option<(PathBuf, KeptHeader)>,
    /// The file of the parts, once there is one.
    kept: Option<Partial>,
    /// Number of parts in it.
    parts: usize,
}

impl<R> State<R> {
    fn publish(&mut self) -> Result<(), Failure> {
        (self.publish)(&self.record, std::mem::take(&mut self.outputs))
    }

    /// Keeps a part. If that fails, on a full disk for example, a warning says so: the part is still in memory.
    pub(crate) fn keep(&mut self, part: &impl Serialize) {
        let Some((path, header)) = &self.place else { return };
        let open = || Partial::open::<_, IgnoredAny>(path, header).map(|(kept, ..)| kept);
        let kept = self.kept.take().map_or_else(open, Ok);
        match kept.and_then(|kept| self.kept.insert(kept).add(part)) {
            Ok(()) => self.parts += 1,
            Err(error) => {
                log::warn!("{}; a kill would lose what is finished", with_causes("", &error));
                // A file without parts has no use.
                let has_header = self.kept.take_if(|_| self.parts == 0).is_some();
                if has_header || fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0) {
                    let _ = fs::remove_file(path); // the warning was about the same file
                }
            }
        }
    }

    fn tell_what_is_kept(&self) {
        if let (Some((path, _)), Some(_)) = (&self.place, &self.kept) {
            say(&format!("what is finished is kept in {}: the same command continues from there", path.display()));
        }
    }
}

impl<R: Send + 'static> SoFar<R> {
    pub(crate) fn new(
        record: R,
        outputs: Outputs,
        publish: impl Fn(&R, Outputs) -> Result<(), Failure> + Send + 'static,
        close: impl Fn(&mut R, Option<&str>) -> bool + Send + 'static,
    ) -> Self {
        let (publish, close) = (Box::new(publish), Box::new(close));
        Self(Arc::new(Mutex::new(State { record, outputs, publish, close, place: None, kept: None, parts: 0 })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `work`, and then publishes the record: also after an error, and after Ctrl-C meanwhile.
    pub(crate) fn run(&self, work: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
        let shared = Self(Arc::clone(&self.0));
        let words = interrupt::last_words(move || {
            let state = &mut *shared.lock();
            if (state.close)(&mut state.record, Some("the run was interrupted")) {
                // A failure to publish can't be reported any more.
                let _ = state.publish();
            }
            state.tell_what_is_kept();
        });
        let ended = work();
        drop(words);
        self.finish(ended)
    }

    /// Makes [`each`](Self::each) write to a file beside the first output that is a file; without such an output it keeps nothing. Returns
    /// the parts that an earlier run of the same command kept there. `names` are those of a part and of several.
    pub(crate) fn resume<T: DeserializeOwned>(
        &self,
        environment: &Environment,
        config: &Runtime,
        sources: &[Source],
        names: [&str; 2],
    ) -> Result<Vec<T>, Failure> {
        let mut state = self.lock();
        let Some(file) = [&state.outputs.json, &state.outputs.html].into_iter().flatten().find_map(Output::regular_file) else {
            return Ok(Vec::new());
        };
        let (path, header) = (partial_of(file), KeptHeader::new(environment, config, sources));
        let mut parts = Vec::new();
        if path.exists() {
            let (kept, found, reason) = Partial::open(&path, &header)?;
            state.kept = Some(kept);
            if let Some(notice) = continuing(&path, reason, found.len(), names) {
                log::warn!("{notice}");
            }
            state.parts = found.len();
            parts = found;
        }
        state.place = Some((path, header));
        Ok(parts)
    }

    /// Adds a part to the record for each of `sources`: the part of this graph among those `kept`, with a warning, else what `measure`
    /// returns, which is then kept. `graph` gives the name of a part's graph. Each part is printed as `show` says as soon as it is there,
    /// unless an output takes standard output. Ends at the first error.
    pub(crate) fn each<T: Serialize>(
        &self,
        sources: &[Source],
        mut kept: Vec<T>,
        graph: fn(&T) -> &str,
        measure: impl Fn(&Source) -> Result<T, Failure>,
        add: impl Fn(&mut R, &T, Option<String>) -> Result<(), Failure>,
        show: impl Fn(&R) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let ended = sources.iter().zip(1..).try_for_each(|(source, number)| {
            let (name, begin) = (source.name(), Instant::now());
            progress::at_graph(number, sources.len());
            let found = kept.iter().position(|part| graph(part) == name).map(|place| kept.remove(place));
            let (part, warning) = match found {
                Some(part) => (part, Some(format!("{name}: measured by an earlier run of this command, which did not end"))),
                None => (measure(source)?, None),
            };
            // Under one lock, so that what is published after Ctrl-C is kept and printed too.
            let state = &mut *self.lock();
            let is_new = warning.is_none();
            add(&mut state.record, &part, warning)?;
            if is_new {
                state.keep(&part);
                progress::graph_done(&name, begin.elapsed());
            }
            if state.outputs.take_stdout() { Ok(()) } else { show(&state.record) }
        });
        progress::at_graph(1, 1);
        ended
    }

    /// Publishes the record of a run that `ended` like this, if it has anything.
    pub(crate) fn finish(&self, ended: Result<(), Failure>) -> Result<(), Failure> {
        let why = ended.as_ref().err().map(|failure| format!("an error ended the run: {failure}"));
        let state = &mut *self.lock();
        if !(state.close)(&mut state.record, why.as_deref()) {
            return ended;
        }
        let published = state.publish();
        if let Some(kept) = state.kept.take_if(|_| ended.is_ok() && published.is_ok()) {
            kept.remove();
        }
        state.tell_what_is_kept();
        worse_of(ended, published)
    }
}

/// The file beside an output that keeps what is measured so far.
pub(crate) fn partial_of(output: &Path) -> PathBuf {
    let mut name = output.to_owned().into_os_string();
    name.push(".partial");
    name.into()
}

/// Says that a command continues after `count` parts in `file`, or for which `reason` it does not.
pub(crate) fn continuing(file: &Path, reason: Option<&str>, count: usize, [one, several]: [&str; 2]) -> Option<String> {
    let file = file.display();
    match reason {
        Some(reason) => Some(format!("starting again: {file} holds measurements, but {reason}")),
        None if count == 0 => None,
        None => Some(format!("continuing after {} measured before ({file})", counted(count as u64, one, several))),
    }
}

/// What must be the same for the parts of a record to be continued.
#[derive(Serialize, Deserialize)]
struct KeptHeader {
    format: String,
    build: String,
    command: Vec<String>,
    /// A hash of settings, machine and files.
    state: String,
}

impl KeptHeader {
    fn new(environment: &Environment, config: &Runtime, sources: &[Source]) -> Self {
        let build = &environment.build;
        let calibrations = match &config.calibration.value {
            CalibrationChoice::File(file) => Some(file.clone()),
            CalibrationChoice::Off => None,
            // The folder changes when a calibration is replaced.
            CalibrationChoice::Auto => runtime::folder(),
        };
        let files = sources.iter().filter_map(Source::file).map(PathBuf::from).chain(calibrations);
        let files: Vec<(u64, SystemTime)> = files
            .filter_map(|file| fs::metadata(file).ok().filter(|file| file.is_file() || file.is_dir()))
            .map(|file| (file.len(), file.modified().unwrap_or(SystemTime::UNIX_EPOCH)))
            .collect();
        let state: &[&dyn Debug] = &[config, &environment.cpu, &environment.system, &files];
        Self {
            format: format!("{}1", Self::KIND),
            build: format!("{} {}", build.version, build.commit),
            command: environment.command.iter().skip(1).cloned().collect(),
            state: format!("{:032x}", XxHash3_128::oneshot(format!("{state:?}").as_bytes())),
        }
    }
}

impl Header for KeptHeader {
    const KIND: &'static str = "socbfs-parts-";

    fn difference(&self, found: &Self) -> Option<&'static str> {
        let differences = [
            (self.build != found.build, OTHER_BUILD),
            (self.command != found.command, "another command line made them"),
            (self.state != found.state, "a setting, a file or the machine is another one"),
        ];
        differences.into_iter().find_map(|(differs, reason)| differs.then_some(reason))
    }
}
