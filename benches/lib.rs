//! The benchmarks are a package of their own, so that building the tests does not need their dependencies: `cargo bench -p socbfs-benches`.
