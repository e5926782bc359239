//! Files of a machine below a root.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The first line of `root`/`path`, without the zero byte that ends strings of the device tree.
pub(super) fn line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim_end_matches('\0').trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// The number in a file.
pub(super) fn number<T: std::str::FromStr>(path: &Path) -> Option<T> {
    line(path)?.parse().ok()
}

/// Entries of a folder whose names `wanted` accepts, by name, shorter names first (so `cpu10` after `cpu9`).
pub(super) fn list(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<(usize, String, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            wanted(&name).then(|| (name.len(), name, entry.path()))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, _, path)| path).collect()
}

/// The name of `path`.
pub(super) fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Whether `name` is `prefix` and a number.
pub(super) fn numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The bytes of `field` in a text of the form of /proc/meminfo.
pub(super) fn kilobytes(text: &str, field: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
