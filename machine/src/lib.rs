//! The facts that Linux reports about a machine, from the files below a root: `/` on a live system, any folder in a test. A file that can't
//! be read gives no value.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    str::FromStr,
};

use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};

/// Most bytes that are read from a file: files of the kernel are small, but a file below another root may be anything.
const MOST: u64 = 4 << 20;

/// Whether the files below `root` are this machine's own. Programs may be run only if they are.
pub fn is_live(root: &Path) -> bool {
    fs::canonicalize(root).is_ok_and(|root| root == Path::new("/"))
}

/// Opens what an untrusted file or folder names, for reading: regular files only. A pipe would block, and opening a device (a watchdog)
/// could have an effect.
///
/// # Errors
/// If `path` is of another kind, or can't be opened.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let checked = |metadata: fs::Metadata| {
        if metadata.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder, not a file"));
        }
        let refused = || io::Error::new(io::ErrorKind::InvalidInput, "it is a device or a pipe, not a file");
        metadata.is_file().then_some(()).ok_or_else(refused)
    };
    checked(fs::metadata(path)?)?;
    // A pipe that has taken its place meanwhile does not block either, nor does a file of the kernel that waits for what comes next.
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    checked(file.metadata()?)?;
    Ok(file)
}

/// The first `MOST` bytes of a file of the system, or of a copy of its files. Only regular files are read.
pub fn bytes(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// As [`bytes`], as text. Bytes that are not UTF-8 are replaced.
pub fn text(path: impl AsRef<Path>) -> Option<String> {
    Some(String::from_utf8_lossy(&bytes(path.as_ref())?).into_owned())
}

/// The first line of a file, trimmed, without the zero byte that ends strings of the device tree. `None` if it is empty.
pub fn line(path: impl AsRef<Path>) -> Option<String> {
    let text = text(path)?;
    let line = text.lines().next()?.trim_end_matches('\0').trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// The number (or whatever else can be parsed) in the first line of a file.
pub fn number<T: FromStr>(path: impl AsRef<Path>) -> Option<T> {
    line(path)?.parse().ok()
}

/// The setting in force, from a file that lists all settings and puts this one in brackets, as in `always [madvise] never`.
pub fn chosen(path: &Path) -> Option<String> {
    Some(line(path)?.split_once('[')?.1.split_once(']')?.0.to_owned())
}

/// Entries of a folder whose names `wanted` accepts, sorted by name, with numbers compared as numbers. Empty if there is no such folder.
pub fn list(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<(Vec<Piece>, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            wanted(&name).then(|| (pieces(&name), entry.path()))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// A part of a name, so that `hwmon10` comes after `hwmon9`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Piece {
    Number(u64),
    Text(String),
}

fn pieces(name: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let digits = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        found.push(if digits { Piece::Number(piece.parse().unwrap_or(u64::MAX)) } else { Piece::Text(piece.to_owned()) });
        rest = after;
    }
    found
}

/// Entries of a folder whose names are `prefix` and a number, in the order of the numbers.
pub fn list_numbered(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    list(folder, |name| numbered(name, prefix))
}

/// Whether `name` is `prefix` and a number.
pub fn numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a device with this name in `sys/class/devfreq` is a GPU: `ff9a0000.gpu`, `13000000.mali`, `5000000.qcom,kgsl-3d0`, or the chip
/// of a Jetson (`17000000.ga10b`). What belongs to a GPU has clocks of its own: codecs (`gpu-nvd-0`) and buses (`soc:qcom,gpubw`).
pub fn is_gpu(name: &str) -> bool {
    let words = || name.split(|c: char| !c.is_ascii_alphanumeric());
    let is_chip = |word: &str| matches!(word.as_bytes(), [b'g', b'a'..=b'z', b'0'..=b'9', b'0'..=b'9', b'a'..=b'z']);
    let is_unit = |word: &str| ["gpu", "mali", "g3d", "3d"].contains(&word.trim_end_matches(|c: char| c.is_ascii_digit()));
    let is_codec = |word: &str| ["nvd", "nve", "nvj", "vdec", "venc", "video", "codec", "vpu"].iter().any(|start| word.starts_with(start));
    words().any(|word| is_chip(word) || is_unit(word)) && !words().any(is_codec)
}

/// The last component of `path`.
pub fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The text of a file with lines `field: value`.
pub struct Fields(String);

impl Fields {
    /// The first value of a field. `None` if it is empty.
    pub fn get(&self, field: &str) -> Option<&str> {
        let (_, value) = self.0.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == field)?;
        Some(value.trim()).filter(|value| !value.is_empty())
    }

    /// The bytes of a field that is given in kB.
    pub fn bytes(&self, field: &str) -> Option<u64> {
        self.get(field)?.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    }
}

/// /proc/meminfo below `root`, with fields such as "MemTotal".
pub fn memory(root: &Path) -> Fields {
    Fields(text(root.join("proc/meminfo")).unwrap_or_default())
}

/// /proc/self/status, with fields such as "VmSize".
pub fn status() -> Fields {
    Fields(text(Path::new("/proc/self/status")).unwrap_or_default())
}

/// /proc/cpuinfo below `root`, with fields such as "model name". (Its values are those of the first CPU that has them.)
pub fn processor(root: &Path) -> Fields {
    Fields(text(root.join("proc/cpuinfo")).unwrap_or_default())
}

/// One cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// Level of the cache: 1 is nearest to the core.
    pub level: u32,
    /// "Data", "Instruction" or "Unified".
    pub kind: String,
    /// Size in bytes.
    pub bytes: u64,
    /// CPUs that share it.
    pub shared_by: Option<String>,
}

/// The model of the processor. x86 and newer ARM kernels name it; boards have a name in the device tree.
pub fn cpu_model(root: &Path) -> Option<String> {
    let processor = processor(root);
    let field = |name: &str| processor.get(name).map(str::to_owned);
    let board = line(root.join("proc/device-tree/model")).or_else(|| field("Hardware"));
    let part = || Some(format!("implementer {} part {}", field("CPU implementer")?, field("CPU part")?));
    match (field("model name").or_else(part), board) {
        (Some(cpu), Some(board)) => Some(format!("{cpu} ({board})")),
        (cpu, board) => cpu.or(board),
    }
}

/// The release of the kernel.
pub fn kernel(root: &Path) -> Option<String> {
    line(root.join("proc/sys/kernel/osrelease"))
}

/// Reads the caches of a CPU from its folder `cache` below `/sys`.
pub fn caches(folder: &Path) -> Vec<Cache> {
    let cache = |index: PathBuf| {
        Some(Cache {
            level: number(index.join("level"))?,
            kind: line(index.join("type"))?,
            bytes: kernel_size(&line(index.join("size"))?)?,
            shared_by: line(index.join("shared_cpu_list")),
        })
    };
    list_numbered(folder, "index").into_iter().filter_map(cache).collect()
}

/// Parses a size such as "2048K" into bytes.
fn kernel_size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.char_indices().last()? {
        (at, 'K') => (&text[..at], 1 << 10),
        (at, 'M') => (&text[..at], 1 << 20),
        (at, 'G') => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn the_first_line_is_read_without_blanks_and_zero_bytes() {
        for (text, wanted) in
            [("Hardkernel XU3\0", Some("Hardkernel XU3")), (" a b \nc\n", Some("a b")), ("\n", None), ("\0\n", None), ("", None)]
        {
            let (_folder, path) = file(text);
            assert_eq!(line(&path).as_deref(), wanted, "{text:?}");
        }
        assert_eq!(line(Path::new("/nonexistent/file")), None);
    }

    #[test]
    fn pipes_and_devices_are_not_read_and_large_files_only_in_part() {
        let (folder, path) = file(&"x".repeat(5 << 20));
        assert_eq!(text(&path).unwrap().len() as u64, MOST);
        let (pipe, zero) = (folder.path().join("pipe"), folder.path().join("zero"));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &zero).unwrap();
        assert_eq!((text(&pipe), text(&zero)), (None, None));
        assert!(open_regular(&pipe).is_err());
        assert!(is_live(Path::new("/proc/..")) && !is_live(folder.path()));
        let (_folder, path) = file("51500\n");
        assert_eq!((number::<u64>(&path), number::<u8>(&path)), (Some(51_500), None));
        let (_folder, path) = file("always [madvise] never\n");
        assert_eq!((chosen(&path).as_deref(), number::<u64>(&path)), (Some("madvise"), None));
        let (_folder, path) = file("always madvise\n");
        assert_eq!(chosen(&path), None);
    }

    #[test]
    fn the_gpu_is_known_by_the_name_of_its_clock() {
        for name in
            "ff9a0000.gpu gpu gpu0 13000000.mali mali 5000000.qcom,kgsl-3d0 kgsl-3d0 gpu-gpc-0 gk20a.0 17000000.gp10b 17000000.gv11b \
                     17000000.ga10b 14ac0000.g3d"
                .split_whitespace()
        {
            assert!(is_gpu(name), "{name}");
        }
        for name in "dmc fdab0000.npu gpu-nvd-0 15480000.nvdec 1c0e000.video-codec soc:qcom,gpubw soc:qcom,kgsl-busmon malidp 15340000.vic"
            .split_whitespace()
        {
            assert!(!is_gpu(name), "{name}");
        }
    }

    #[test]
    fn entries_are_listed_in_the_order_of_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["cpu10", "cpu2", "cpu0", "cpufreq", "cpu", "xcpu1"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let names = |paths: Vec<PathBuf>| paths.iter().map(|path| name(path)).collect::<Vec<_>>();
        assert_eq!(names(list_numbered(folder.path(), "cpu")), ["cpu0", "cpu2", "cpu10"]);
        assert_eq!(names(list(folder.path(), |name| !name.starts_with("cpu"))), ["xcpu1"]);
        assert_eq!(list_numbered(&folder.path().join("none"), "cpu"), Vec::<PathBuf>::new());
    }

    #[test]
    fn fields_of_memory_and_processor_are_read() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!((memory(root.path()).bytes("MemTotal"), processor(root.path()).get("model name")), (None, None));
        fs::create_dir(root.path().join("proc")).unwrap();
        fs::write(root.path().join("proc/meminfo"), "MemTotalX: 1 kB\nMemTotal:    2048 kB\nHugePages_Total:  3\nMemFree: x kB\n").unwrap();
        fs::write(root.path().join("proc/cpuinfo"), "processor\t: 0\nmodel name\t: A: B \nmodel name\t: C\nHardware\t:\n").unwrap();
        let (memory, processor) = (memory(root.path()), processor(root.path()));
        let bytes = |field| memory.bytes(field);
        assert_eq!((bytes("MemTotal"), bytes("HugePages_Total"), bytes("MemFree"), bytes("Mem")), (Some(2 << 20), None, None, None));
        let field = |name| processor.get(name);
        assert_eq!((field("model name"), field("Hardware"), field("model")), (Some("A: B"), None, None));
    }

    #[test]
    fn sizes_are_read_as_the_kernel_writes_them() {
        assert_eq!(kernel_size("32K"), Some(32 << 10));
        assert_eq!(kernel_size("300M"), Some(300 << 20));
        assert_eq!(kernel_size("12"), Some(12));
        assert_eq!(kernel_size("K"), None);
        assert_eq!(kernel_size(""), None);
    }
}
