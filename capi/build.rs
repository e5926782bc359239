//! Sets the name by which programs find the shared library (its soname). It changes when the interface breaks.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CARGO_CAPI");
    // cargo-c sets the soname itself.
    if std::env::var_os("CARGO_CAPI").is_none() && std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        let major = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libsocbfs.so.{major}");
    }
}
