//! Checks that the header is the one that cbindgen makes from the library.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::{fs, path::Path};

#[test]
fn the_header_matches_the_library() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).unwrap();
    let mut made = Vec::new();
    cbindgen::Builder::new().with_src(here.join("src/lib.rs")).with_config(config).generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let path = here.join("include/socbfs.h");
    let header = fs::read_to_string(&path).unwrap_or_default();
    if made != header {
        let beside = Path::new(env!("CARGO_TARGET_TMPDIR")).join("socbfs.h");
        fs::write(&beside, &made).unwrap();
        panic!("{} differs: if the change is meant, copy {} there", path.display(), beside.display());
    }
}
