//! Ranks whose device is lost.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::{error::Error, fs, sync::Arc};

use socbfs::{
    GpuOptions, GpuSetup,
    bfs::GpuKernel,
    graph::{EdgeList, Listing, Order},
    memory::SharingMode,
};
use socbfs_cluster::{ClusterOptions, ClusterSearch, Part, Places, RankDevice, Ranks, ThreadRanks};
use socbfs_policy::{Band, Bands};

use crate::{
    cluster::whole_tree,
    losing::{points, with_a_device_to_lose},
    reference::Reference,
    searches::{all_combinations, edges},
};

/// Searches over two ranks, of which the second has the device, loses the device after `after` commands, and searches again. Returns why
/// the second rank fell back.
fn lose_over_ranks(
    list: &EdgeList,
    reference: &Reference,
    options: &ClusterOptions,
    file: &str,
    after: u32,
) -> Result<Option<String>, String> {
    let of_ranks = ThreadRanks::run(2, |ranks| {
        let part = Part::build(list, Order::Degree, ranks).unwrap();
        let own = ClusterOptions { device: options.device.clone().filter(|_| ranks.rank() == 1), ..options.clone() };
        let mut search = ClusterSearch::new(&part, ranks, &own).unwrap();
        let mut trees = Vec::new();
        for turn in 0..3 {
            if turn == 1 {
                assert_eq!(search.fallen_back(), None);
                ranks.barrier();
                if ranks.rank() == 1 {
                    fs::write(file, after.to_string()).unwrap();
                }
                ranks.barrier();
            }
            // The results are right, whether the device is lost in the first search, a later one, or none, and no rank uses it
            // again. (1200 has no edge.)
            for root in [3, 1200, 700] {
                if let Err(error) = search.run(root) {
                    // Later searches, even from a vertex without an edge, fail with the same error; no rank waits.
                    for root in [3, 1200] {
                        assert_eq!(search.run(root).unwrap_err().to_string(), error.to_string());
                    }
                    return Err(error.to_string());
                }
                trees.push((root, whole_tree(ranks, &part, &search, &[root])));
            }
        }
        Ok::<_, String>((trees, search.fallen_back().map(str::to_owned)))
    });
    fs::remove_file(file).unwrap();
    let [first, second] = &of_ranks[..] else { unreachable!("there are two") };
    let (trees, none) = match (first, second) {
        (Ok(first), Ok(_)) => first,
        (Err(first), Err(second)) => {
            assert_eq!(first, second, "all ranks tell the same");
            return Err(first.clone());
        }
        _ => panic!("one rank has gone on: {of_ranks:?}"),
    };
    assert_eq!(*none, None, "the first has no device");
    for (root, tree) in trees {
        reference.compare_tree(*root, tree);
    }
    second.clone().map(|(_, reason)| reason)
}

#[test]
fn ranks_continue_without_a_lost_device_or_fail_together() {
    const TEST: &str = "ranks_continue_without_a_lost_device_or_fail_together";
    with_a_device_to_lose(module_path!(), TEST, |device, file| {
        let edges = edges(1200, 5000, 5, 1);
        let list = EdgeList::new(1201, edges.clone(), Listing::Once).unwrap();
        let reference = Reference::new(1201, &edges, false, &[3, 1200, 700]);
        let bands = Bands { top_down: Band::gpu_from(30), bottom_up: Band::gpu_from(0) };
        let ways = || SharingMode::ALL.into_iter().filter(|way| way.offered(device.info())).enumerate();
        let both = [Places::Every, Places::By(bands)].into_iter().enumerate();
        for ((a, places), (b, way)) in both.flat_map(|places| ways().map(move |way| (places, way))) {
            // Alternates between the choices of `places`.
            if (a + b) % 2 > 0 && !all_combinations() {
                continue;
            }
            let with = |fall_back| {
                let setup = GpuSetup { device: Arc::clone(device), way, options: GpuOptions::default() };
                let device = Some(RankDevice { setup, bottom_up: GpuKernel::Bg, places, fall_back });
                ClusterOptions { device, ..ClusterOptions::default() }
            };
            let mut lost = 0;
            for after in points() {
                let reason = lose_over_ranks(&list, &reference, &with(true), file, after).unwrap();
                let Some(reason) = reason else { break };
                for words in [&device.info().name, "CL_OUT_OF_RESOURCES", "gave the device up"] {
                    assert!(reason.contains(words), "{places:?} {way} after {after}: no {words} in {reason}");
                }
                lost += 1;
                // Without fall-back, the device is lost at every other one of these points.
                if after % 2 > 0 && !all_combinations() {
                    continue;
                }
                let error = lose_over_ranks(&list, &reference, &with(false), file, after).unwrap_err();
                for words in ["rank 1", &device.info().name, "CL_OUT_OF_RESOURCES"] {
                    assert!(error.contains(words), "{places:?} {way} after {after}: no {words} in {error}");
                }
            }
            assert!(lost >= 6, "{places:?} {way}: lost at {lost} points only");
        }
    });
}

/// A rank whose device fails before the first search continues on its CPU if allowed; otherwise all ranks get an error, and none waits.
#[test]
fn ranks_search_without_a_device_lost_during_setup_or_all_fail() {
    const TEST: &str = "ranks_search_without_a_device_lost_during_setup_or_all_fail";
    with_a_device_to_lose(module_path!(), TEST, |device, file| {
        let edges = edges(1200, 5000, 5, 1);
        let list = EdgeList::new(1200, edges.clone(), Listing::Once).unwrap();
        let reference = Reference::new(1200, &edges, false, &[3, 700]);
        let name = &device.info().name;
        // The policy, whether falling back is allowed, and whether the second rank falls back.
        for (policy, fall_back, goes_on) in [("alpha-beta", true, true), ("alpha-beta", false, false), ("tg", true, false)] {
            let setup = GpuSetup { device: Arc::clone(device), way: SharingMode::AllocHostPtr, options: GpuOptions::default() };
            let own = RankDevice { setup, bottom_up: GpuKernel::Bg, places: Places::Every, fall_back };
            let of_ranks = ThreadRanks::run(2, |ranks| {
                let part = Part::build(&list, Order::Degree, ranks).unwrap();
                let own = Some(own.clone()).filter(|_| ranks.rank() == 1);
                let options = ClusterOptions { policy: policy.parse().unwrap(), device: own, ..ClusterOptions::default() };
                ranks.barrier();
                if ranks.rank() == 1 {
                    fs::write(file, "3").unwrap();
                }
                ranks.barrier();
                let mut search = ClusterSearch::new(&part, ranks, &options)
                    .map_err(|error| (error.to_string(), error.source().map(ToString::to_string)))?;
                let trees = [3, 700].map(|root| {
                    search.run(root).unwrap();
                    (root, whole_tree(ranks, &part, &search, &[root]))
                });
                Ok::<_, (String, Option<String>)>((trees, search.fallen_back().map(str::to_owned)))
            });
            fs::remove_file(file).unwrap();
            // One command that succeeds resets the count.
            device.finish().unwrap();
            match &of_ranks[..] {
                [Ok((trees, None)), Ok((_, Some(reason)))] if goes_on => {
                    trees.iter().for_each(|(root, tree)| reference.compare_tree(*root, tree));
                    assert!(reason.contains(name) && reason.contains("CL_OUT_OF_RESOURCES"), "{policy}: {reason}");
                }
                [Err((first, None)), Err((second, Some(cause)))] if !goes_on => {
                    assert!(first.contains("rank 1") && first.contains(name) && first.contains("CL_OUT_OF_RESOURCES"), "{policy}: {first}");
                    assert!(second.contains(name) && cause.contains("CL_OUT_OF_RESOURCES"), "{policy}: {second}: {cause}");
                }
                other => panic!("{policy}, may fall back: {fall_back}: {other:?}"),
            }
        }
    });
}
