use rayon::ThreadPoolBuilder;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use socbfs::graph::Vertex;

fn edges_of(list: &EdgeList) -> Vec<[Vertex; 2]> {
    let mut edges = Vec::with_capacity(list.len());
    list.for_each(0..list.len(), |source, target| edges.push([source, target]));
    edges
}

fn generated(generator: &Generator) -> Vec<[Vertex; 2]> {
    let list = generator.generate(&|_| ()).unwrap();
    assert_eq!(list.listing(), Listing::Once);
    let edges = edges_of(&list);
    assert!(edges.iter().flatten().all(|&v| (v as usize) < list.vertices()));
    edges
}

fn degrees(vertices: usize, edges: &[[Vertex; 2]]) -> Vec<u32> {
    let mut degree = vec![0; vertices];
    edges.iter().flatten().for_each(|&v| degree[v as usize] += 1);
    degree
}

fn samples() -> Vec<Generator> {
    vec![
        Generator::Kronecker { scale: 11, edge_factor: 7, seed1: 5, seed2: 1 << 40 },
        Generator::Rmat { scale: 11, edge_factor: 9, a: 0.5, b: 0.2, c: 0.2, d: 0.1, seed: 3 },
        Generator::Uniform { vertices: 3000, edges: 20_000, seed: 4 },
        Generator::Rodinia { vertices: 9000, seed: 5 },
        Generator::Grid { width: 130, height: 90, deletion: 0.1, seed: 6 },
    ]
}

/// The hash behind the golden hashes: FNV-1a over both ends of every edge as little-endian 64-bit numbers, started at 1469598103934665603,
/// which is FNV's offset basis without its last digit.
fn fnv(edges: &[[Vertex; 2]]) -> u64 {
    let bytes = edges.iter().flatten().flat_map(|&v| u64::from(v).to_le_bytes());
    bytes.fold(1_469_598_103_934_665_603, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Compares with the edges of the Graph500 reference code 3.0.1, seeds 2 and 3.
fn check_golden(scale: u32, first: &[[Vertex; 2]], hash: u64, isolated: usize) {
    let edges = generated(&Generator::graph500(scale));
    assert_eq!(edges.len(), 16 << scale);
    assert_eq!(&edges[..first.len()], first);
    assert_eq!(fnv(&edges), hash, "scale {scale}: {:016x}", fnv(&edges));
    let joined: Vec<[Vertex; 2]> = edges.into_iter().filter(|[u, v]| u != v).collect();
    assert_eq!(degrees(1 << scale, &joined).iter().filter(|&&degree| degree == 0).count(), isolated);
}

#[test]
fn kronecker_10_matches_the_reference() {
    check_golden(10, &[[299, 797], [684, 861]], 0x3986_37ec_e9f3_ad63, 125);
}

#[test]
fn kronecker_16_matches_the_reference() {
    check_golden(16, &[[53430, 37000], [16463, 33235]], 0x11c7_a24e_1244_6019, 18721);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "16.8 million edges: run with --release")]
fn kronecker_20_matches_the_reference() {
    check_golden(20, &[[754_405, 286_754], [802_479, 384_927]], 0xd50d_d777_c57d_0f06, 402_453);
}

#[test]
#[ignore = "67 million edges and 0.6 GB: run with --release and --ignored"]
fn kronecker_22_matches_the_reference() {
    check_golden(22, &[[1_150_333, 4_117_346]], 0x9be8_ebd4_2377_16f1, 1_797_658);
}

#[test]
fn the_number_of_threads_does_not_change_the_list() {
    for generator in samples() {
        let by_threads = [1, 2, 5].map(|threads| {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| generated(&generator))
        });
        assert!(!by_threads[0].is_empty());
        assert!(by_threads.iter().all(|edges| *edges == by_threads[0]), "{generator}");
    }
}

#[test]
fn progress_adds_up_to_the_announced_work() {
    for generator in samples() {
        let done = AtomicU64::new(0);
        generator
            .generate(&|work| {
                done.fetch_add(work, Ordering::Relaxed);
            })
            .unwrap();
        assert_eq!(done.into_inner(), generator.work(), "{generator}");
    }
}

#[test]
fn seeds_change_the_list() {
    for (one, other) in [
        (
            Generator::Kronecker { scale: 8, edge_factor: 4, seed1: 2, seed2: 3 },
            Generator::Kronecker { scale: 8, edge_factor: 4, seed1: 2, seed2: 4 },
        ),
        (Generator::Uniform { vertices: 100, edges: 400, seed: 0 }, Generator::Uniform { vertices: 100, edges: 400, seed: 1 }),
        (Generator::Rodinia { vertices: 100, seed: 0 }, Generator::Rodinia { vertices: 100, seed: 1 }),
        (
            Generator::Grid { width: 20, height: 20, deletion: 0.5, seed: 0 },
            Generator::Grid { width: 20, height: 20, deletion: 0.5, seed: 1 },
        ),
    ] {
        assert_ne!(generated(&one), generated(&other), "{one}");
    }
}

/// The generators that use socbfs's own random numbers promise the same list in every version.
#[test]
fn lists_are_the_same_in_every_version() {
    let hashes: Vec<String> = samples()[1..].iter().map(|generator| format!("{:016x}", fnv(&generated(generator)))).collect();
    assert_eq!(hashes, ["e793a97a8716e316", "f84126291b51ed08", "a7e07d2b41734cab", "acb9acb98fcc6699"]);
}

#[test]
fn rmat_fills_quadrants_by_their_probabilities() {
    let [a, b, c, d] = [0.4, 0.3, 0.2, 0.1];
    let edges = generated(&Generator::Rmat { scale: 10, edge_factor: 64, a, b, c, d, seed: 1 });
    assert_eq!(edges.len(), 65536);
    for bit in [9, 5, 0] {
        let mut share = [0.0; 4];
        edges.iter().for_each(|&[u, v]| share[((u >> bit & 1) << 1 | (v >> bit & 1)) as usize] += 1.0 / edges.len() as f64);
        for (got, expected) in share.iter().zip([a, b, c, d]) {
            // Six standard deviations are 0.012.
            assert!((got - expected).abs() < 0.012, "bit {bit}: {share:?}");
        }
    }
}

#[test]
fn rmat_accepts_a_probability_of_one() {
    for (quadrant, ends) in [[0, 0], [0, 63], [63, 0], [63, 63]].into_iter().enumerate() {
        let p = |i| if i == quadrant { 1.0 } else { 0.0 };
        let edges = generated(&Generator::Rmat { scale: 6, edge_factor: 2, a: p(0), b: p(1), c: p(2), d: p(3), seed: 9 });
        assert!(edges.len() == 128 && edges.iter().all(|&edge| edge == ends));
    }
}

#[test]
fn uniform_reaches_every_vertex_evenly() {
    let edges = generated(&Generator::Uniform { vertices: 1000, edges: 100_000, seed: 7 });
    let degree = degrees(1000, &edges);
    // The mean is 200, the standard deviation 14; the bounds are seven standard deviations away.
    assert!(degree.iter().all(|&degree| (100..300).contains(&degree)), "{:?} {:?}", degree.iter().min(), degree.iter().max());
}

#[test]
fn rodinia_draws_two_to_four_edges() {
    let n = 30_000;
    let edges = generated(&Generator::Rodinia { vertices: n, seed: 2 });
    let mut drawn = vec![0_usize; n as usize];
    edges.iter().for_each(|&[u, _]| drawn[u as usize] += 1);
    let mut share = [0.0; 5];
    drawn.iter().for_each(|&count| share[count] += 1.0 / n as f64);
    assert!(share[0] == 0.0 && share[1] == 0.0 && share[2..].iter().all(|share| (share - 1.0 / 3.0).abs() < 0.02), "{share:?}");
}

#[test]
fn grid_without_deletion_has_every_edge() {
    let edges = generated(&Generator::Grid { width: 3, height: 2, deletion: 0.0, seed: 0 });
    assert_eq!(edges, [[0, 1], [0, 3], [1, 2], [1, 4], [2, 5], [3, 4], [4, 5]]);
    assert!(generated(&Generator::Grid { width: 30, height: 20, deletion: 1.0, seed: 0 }).is_empty());
    assert!(generated(&Generator::Grid { width: 0, height: 20, deletion: 0.0, seed: 0 }).is_empty());
    assert_eq!(generated(&Generator::Grid { width: 1, height: 3, deletion: 0.0, seed: 0 }), [[0, 1], [1, 2]]);
}

#[test]
fn grid_deletes_the_given_share() {
    let (width, height) = (300_u64, 200_u64);
    let all = (width - 1) * height + (height - 1) * width;
    let kept = generated(&Generator::Grid { width, height, deletion: 0.25, seed: 8 }).len() as f64 / all as f64;
    assert!((kept - 0.75).abs() < 0.01, "{kept}");
}

#[test]
fn graphs_without_edges_are_generated() {
    let none = Generator::Uniform { vertices: 0, edges: 0, seed: 0 }.generate(&|_| ()).unwrap();
    assert!(none.vertices() == 0 && none.is_empty());
    assert_eq!(Generator::Rodinia { vertices: 0, seed: 0 }.generate(&|_| ()).unwrap().len(), 0);
    let bare = Generator::Kronecker { scale: 1, edge_factor: 0, seed1: 0, seed2: 0 }.generate(&|_| ()).unwrap();
    assert!(bare.vertices() == 2 && bare.is_empty());
}

#[test]
fn bad_parameters_are_refused() {
    let rmat = |a, b, c, d| Generator::Rmat { scale: 4, edge_factor: 1, a, b, c, d, seed: 0 };
    let wide = cfg!(target_pointer_width = "64");
    let addresses = if wide { "more than a program of 64 bits can address" } else { "more than a program of 32 bits can address" };
    let refused = [
        (Generator::graph500(0), "scale 0 is out of range"),
        (Generator::graph500(32), "scale 32 is out of range"),
        (Generator::graph500(u32::MAX), "out of range"),
        (Generator::Kronecker { scale: 31, edge_factor: u64::MAX, seed1: 2, seed2: 3 }, addresses),
        (rmat(0.5, 0.2, 0.2, 0.2), "must sum to 1"),
        (rmat(0.1, 0.2, 0.33, 0.3), "a + b + c + d = 0.93, but"),
        (rmat(1.5, -0.5, 0.0, 0.0), "a = 1.5 is not a probability"),
        (rmat(f64::NAN, 0.5, 0.3, 0.2), "a = NaN is not a probability"),
        (Generator::Uniform { vertices: 0, edges: 3, seed: 0 }, "0 vertices can't have 3 edges"),
        (Generator::Uniform { vertices: 1 << 32, edges: 3, seed: 0 }, "4294967296 vertices"),
        (Generator::Uniform { vertices: 4, edges: u64::MAX, seed: 0 }, addresses),
        (Generator::Uniform { vertices: 4, edges: 1 << 58, seed: 0 }, if wide { "no memory for the edge list" } else { addresses }),
        (Generator::Rodinia { vertices: u64::MAX, seed: 0 }, "vertices"),
        (Generator::Grid { width: u64::MAX, height: u64::MAX, deletion: 0.1, seed: 0 }, "vertices"),
        (Generator::Grid { width: 2, height: 2, deletion: 1.1, seed: 0 }, "deletion = 1.1 is not a probability"),
    ];
    for (generator, message) in refused {
        let error = generator.generate(&|_| ()).unwrap_err().to_string();
        assert!(error.contains(message), "{generator}: {error}");
    }
    assert!(rmat(0.1, 0.2, 0.3, 0.4).validate().is_ok());
}

#[test]
fn generators_are_described_in_full() {
    assert_eq!(Generator::graph500(20).to_string(), "kronecker scale=20 edgefactor=16 seeds=2,3");
    assert_eq!(samples()[1].to_string(), "rmat scale=11 edgefactor=9 a=0.5 b=0.2 c=0.2 d=0.1 seed=3");
    assert_eq!(samples()[2].to_string(), "uniform vertices=3000 edges=20000 seed=4");
    assert_eq!(samples()[3].to_string(), "rodinia vertices=9000 seed=5");
    assert_eq!(samples()[4].to_string(), "grid width=130 height=90 deletion=0.1 seed=6");
}
