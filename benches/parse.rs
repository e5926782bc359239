//! Speed of reading graph files. `SOCBFS_BENCH_EDGES` sets the number of edges (default 2^20); `SOCBFS_BENCH_FILE` reads the given file
//! instead.
#![allow(clippy::expect_used, missing_docs)] // a benchmark that can't be set up may stop; criterion's macros have no docs

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use socbfs::graph::{EdgeList, Listing};
use socbfs_io::{Format, ReadOptions, WriteOptions, read, write};

/// `edges` edges between random vertices, of which there are 1/16 as many.
fn random(edges: usize) -> EdgeList {
    let vertices = (edges / 16).max(1);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        // Marsaglia's xorshift64. Any sequence without a pattern would do.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % vertices as u64) as u32
    };
    let list = (0..edges).map(|_| [next(), next()]).collect();
    EdgeList::new(vertices, list, Listing::Unknown).expect("fits 32 bits")
}

fn parse(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    if let Some(file) = env::var_os("SOCBFS_BENCH_FILE") {
        files.push(("file".into(), file.into()));
    } else {
        let edges = env::var("SOCBFS_BENCH_EDGES").map_or(1 << 20, |text| text.parse().expect("SOCBFS_BENCH_EDGES is a number"));
        let list = random(edges);
        for format in Format::WRITABLE {
            let path = folder.path().join(format!("graph.{format}"));
            write(&path, format, &list, &WriteOptions::default()).expect("written");
            files.push((format.to_string(), path));
        }
        let packed = folder.path().join("graph.el.gz");
        let mut encoder = flate2::write::GzEncoder::new(fs::File::create(&packed).expect("created"), flate2::Compression::default());
        encoder.write_all(&fs::read(folder.path().join("graph.el")).expect("read back")).expect("compressed");
        encoder.finish().expect("finished");
        files.push(("el.gz".into(), packed));
    }
    let mut group = criterion.benchmark_group("parse");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    for (name, path) in &files {
        group.throughput(Throughput::Bytes(fs::metadata(path).expect("is there").len()));
        for threads in [1, rayon::current_num_threads()] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            group.bench_with_input(BenchmarkId::new(name, format!("{threads} threads")), path.as_path(), |bencher, path: &Path| {
                bencher.iter_with_large_drop(|| pool.install(|| read(path, &ReadOptions::default()).expect("reads")));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, parse);
criterion_main!(benches);
