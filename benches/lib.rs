//! Benchmarks stand in a package of their own, so that tests are not built with what they need: `cargo bench -p socbfs-benches`.
