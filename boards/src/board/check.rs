//! Checks of a profile's values, one small function each. Types such as `CpuList` refuse their invalid values themselves.

use std::collections::BTreeSet;

use socbfs::{bfs::Strategy, threads::MOST_THREADS};
use socbfs_policy::NEVER;

use super::{Board, MOST_BATCH, OpenClDevice, Quirk, SCHEMA, Speeds};

/// A value that fails a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Path of the key.
    pub key: String,
    /// The error, and what would be correct.
    pub reason: String,
}

type Check = Result<(), Violation>;

pub fn refuse(key: impl Into<String>, reason: impl Into<String>) -> Check {
    Err(Violation { key: key.into(), reason: reason.into() })
}

impl<P> Board<P> {
    /// Runs every check of the values.
    ///
    /// # Errors
    /// The first [`Violation`].
    pub fn validate(&self) -> Result<(), Violation> {
        self.check_schema()?;
        self.check_name()?;
        self.check_memory()?;
        self.check_detect()?;
        self.check_threads()?;
        self.check_clusters()?;
        self.check_cpus()?;
        self.check_devices()?;
        self.check_bands()?;
        self.check_speeds()?;
        self.check_points()?;
        self.check_watts()?;
        self.check_rails()
    }

    fn check_schema(&self) -> Check {
        if self.schema == SCHEMA {
            return Ok(());
        }
        refuse("schema", format!("is {}, but this build of socbfs reads schema {SCHEMA}", self.schema))
    }

    fn check_name(&self) -> Check {
        let name = &self.board.name;
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !name.is_empty() && name.chars().all(good) {
            return Ok(());
        }
        refuse("board.name", format!("{name:?} must be made of a-z, 0-9 and '-'"))
    }

    fn check_memory(&self) -> Check {
        above_zero("board.memory_bytes", self.board.memory_bytes)?;
        above_zero("board.memory_bandwidth_mega_bytes_per_s", self.board.memory_bandwidth_mega_bytes_per_s)
    }

    fn check_detect(&self) -> Check {
        let is_bad = |name: &&String| name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == '*');
        let why = "is not a string of a device tree as \"hardkernel,odroid-xu4\" is; device_tree_model takes patterns";
        let bad = self.detect.device_tree.iter().find(is_bad);
        bad.map_or(Ok(()), |name| refuse("detect.device_tree", format!("{name:?} {why}")))
    }

    fn check_threads(&self) -> Check {
        if let Some(threads) = self.cpu.threads.filter(|&threads| threads > MOST_THREADS) {
            return refuse("cpu.threads", format!("is {threads}; at most {MOST_THREADS}, 0 for one on every CPU"));
        }
        if let Some(batch) = self.cpu.batch.filter(|batch| !(1..=MOST_BATCH).contains(batch)) {
            return refuse("cpu.batch", format!("is {batch}; it must be a number of vertices from 1 to {MOST_BATCH}"));
        }
        Ok(())
    }

    fn check_clusters(&self) -> Check {
        let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
        for (place, cluster) in self.cpu.clusters.iter().enumerate() {
            let key = |key: &str| format!("cpu.clusters[{place}].{key}");
            if cluster.name.is_empty() || !names.insert(&cluster.name) {
                return refuse(key("name"), format!("{:?} must be a name that no other cluster has", cluster.name));
            }
            above_zero(&key("cores"), Some(u64::from(cluster.cores)))?;
            above_zero(&key("max_mhz"), cluster.max_mhz.map(u64::from))?;
            if let Some(capacity) = cluster.capacity.filter(|capacity| !(1..=1024).contains(capacity)) {
                return refuse(key("capacity"), format!("is {capacity}; Linux counts from 1 to 1024, the fastest core of the chip"));
            }
            let Some(cpus) = &cluster.cpus else { continue };
            let count = cpus.numbers().len();
            // Simultaneous multithreading gives every core the same number of CPUs.
            if usize::try_from(cluster.cores).map_or(true, |cores| count % cores != 0) {
                return refuse(key("cpus"), format!("{cpus} are {count} CPUs, which {} cores can't have in equal parts", cluster.cores));
            }
            if let Some(cpu) = cpus.numbers().iter().find(|&&cpu| !numbers.insert(cpu)) {
                return refuse(key("cpus"), format!("CPU {cpu} is already in another cluster"));
            }
        }
        Ok(())
    }

    fn check_cpus(&self) -> Check {
        let known: Option<Vec<_>> = self.cpu.clusters.iter().map(|cluster| cluster.cpus.as_ref()).collect();
        let (Some(cpus), Some(known)) = (&self.cpu.cpus, known.filter(|known| !known.is_empty())) else { return Ok(()) };
        let unknown = cpus.numbers().iter().find(|cpu| !known.iter().any(|list| list.numbers().contains(cpu)));
        unknown.map_or(Ok(()), |cpu| refuse("cpu.cpus", format!("CPU {cpu} is in none of the clusters")))
    }

    fn check_devices(&self) -> Check {
        for (place, device) in self.opencl.devices.iter().enumerate() {
            device.check(&format!("opencl.devices[{place}]"))?;
            // Of two tables that fit a device, the first one counts.
            let hides = |other: &OpenClDevice| other.name == device.name && (other.via.is_none() || other.via == device.via);
            if let Some(other) = self.opencl.devices[..place].iter().position(hides) {
                return refuse(format!("opencl.devices[{place}].name"), format!("is already that of opencl.devices[{other}]"));
            }
        }
        Ok(())
    }

    fn check_bands(&self) -> Check {
        for (band, table) in [(&self.adaptive.top_down, "adaptive.top_down"), (&self.adaptive.bottom_up, "adaptive.bottom_up")] {
            let from = [band.gpu_from, band.split_from].into_iter().flatten().min().unwrap_or(0);
            if let Some(up_to) = band.up_to.filter(|&up_to| up_to <= from && up_to < NEVER) {
                return refuse(format!("{table}.up_to"), format!("is {up_to}, which leaves no level for the GPU; it must be above {from}"));
            }
            // Each of the two devices has work.
            if let Some(share) = band.gpu_permille.filter(|share| !(1..1000).contains(share)) {
                return refuse(format!("{table}.gpu_permille"), format!("is {share}; it must be a number of thousandths, 1 to 999"));
            }
        }
        not_negative("adaptive.handover.fixed_us", self.adaptive.handover.fixed_us)?;
        not_negative("adaptive.handover.mega_vertex_us", self.adaptive.handover.mega_vertex_us)
    }

    fn check_speeds(&self) -> Check {
        for strategy in Strategy::ALL {
            positive(&format!("speeds.{}", Speeds::key(strategy)), self.speeds.of(strategy))?;
        }
        positive("speeds.launch_us", self.speeds.launch_us)
    }

    fn check_points(&self) -> Check {
        for (place, point) in self.operating_points.iter().enumerate() {
            let refuse = |key: &str, reason: &str| refuse(format!("operating_points[{place}].{key}"), reason);
            if self.operating_points[..place].iter().any(|other| other.goal == point.goal) {
                return refuse("goal", "is that of an earlier point");
            }
            if point.cpus.numbers().is_empty() {
                return refuse("cpus", "names no CPU");
            }
            positive(&format!("operating_points[{place}].mteps"), point.mteps)?;
            positive(&format!("operating_points[{place}].watts"), point.watts)?;
        }
        Ok(())
    }

    fn check_watts(&self) -> Check {
        let check = |strategy: Strategy| positive(&format!("power.watts.{}", strategy.name()), self.power.watts.of(strategy));
        Strategy::ALL.into_iter().try_for_each(check)
    }

    fn check_rails(&self) -> Check {
        let rails = &self.power.rails;
        for (place, rail) in rails.iter().enumerate() {
            let key = |key: &str| format!("power.rails[{place}].{key}");
            if rail.id.is_none() && rail.label.is_none() {
                return refuse(key("id"), "is absent, and so is label: one of them must say which sensor is meant");
            }
            if ![1, -1].contains(&rail.sign) {
                return refuse(key("sign"), format!("is {}; it must be 1, or -1 where consumption shows as a negative number", rail.sign));
            }
            positive(&key("scale"), Some(rail.scale))?;
            let same = |other: &socbfs_power::Rail| (other.family, &other.id, &other.label) == (rail.family, &rail.id, &rail.label);
            if let Some(other) = rails[..place].iter().position(same) {
                return refuse(key("family"), format!("this sensor is already power.rails[{other}]"));
            }
        }
        let counted = rails.iter().any(|rail| rail.counted);
        match (self.power.scope, counted) {
            (None, true) => refuse("power.scope", "is absent, but rails are counted: say what their sum covers"),
            (Some(_), false) if !rails.is_empty() => refuse("power.scope", "names a sum, but no rail is counted"),
            _ => Ok(()),
        }
    }
}

/// Whether a work-group may have this many work-items: they write whole words of the frontier.
pub fn is_work_group(items: usize) -> bool {
    items > 0 && items % 32 == 0
}

/// Refuses an invalid number of work-items in a work-group. `place` is the path of the device's table.
pub fn check_work_group(place: &str, items: Option<usize>) -> Check {
    let bad = items.filter(|&items| !is_work_group(items));
    bad.map_or(Ok(()), |items| refuse(format!("{place}.work_group"), format!("is {items}; it must be a multiple of 32")))
}

impl OpenClDevice {
    fn check(&self, place: &str) -> Check {
        for (key, value) in [
            ("compute_units", self.compute_units.map(u64::from)),
            ("max_alloc_bytes", self.max_alloc_bytes),
            ("max_work_group", self.max_work_group.map(u64::from)),
            ("work_group", self.work_group.map(u64::from)),
            ("bottom_up_permille", self.bottom_up_permille.map(u64::from)),
            ("local_bytes", self.local_bytes),
            ("global_bytes", self.global_bytes),
            ("timeout_s", self.timeout_s),
        ] {
            above_zero(&format!("{place}.{key}"), value)?;
        }
        if let (Some(largest), Some(all)) = (self.max_alloc_bytes, self.global_bytes) {
            if largest > all {
                return refuse(format!("{place}.max_alloc_bytes"), format!("is {largest}, more than global_bytes = {all}"));
            }
        }
        check_work_group(place, self.work_group.map(|items| items as usize))?;
        if let (Some(items), Some(most)) = (self.work_group, self.max_work_group) {
            if items > most {
                return refuse(format!("{place}.work_group"), format!("is {items}, more than max_work_group = {most}"));
            }
        }
        if let Some((way, quirk)) = self.memory_way.and_then(|way| Some((way, self.against(way)?))) {
            return refuse(format!("{place}.memory_way"), format!("is {way}, which the quirk {quirk} rules out"));
        }
        if self.bgc == Some(true) && self.quirks.contains(&Quirk::LocalIsGlobal) {
            return refuse(
                format!("{place}.bgc"),
                "is true, but the quirk local-is-global says that the device has no local memory of its own",
            );
        }
        Ok(())
    }
}

fn above_zero(key: &str, value: Option<u64>) -> Check {
    if value == Some(0) { refuse(key, "is 0; omit the key if the value is not known") } else { Ok(()) }
}

/// Refuses a number that is negative or not finite.
pub fn not_negative(key: &str, value: Option<f64>) -> Check {
    let bad = value.filter(|value| !value.is_finite() || *value < 0.0);
    bad.map_or(Ok(()), |value| refuse(key, format!("is {value}; it must be a finite number, 0 or above")))
}

/// Refuses a number that is not above 0, or not finite.
pub fn positive(key: &str, value: Option<f64>) -> Check {
    let bad = value.filter(|value| !value.is_finite() || *value <= 0.0);
    bad.map_or(Ok(()), |value| refuse(key, format!("is {value}; it must be a finite number above 0, or absent")))
}

#[cfg(test)]
mod tests {
    use crate::board::{Board, DocumentError};

    type Plain = Board<toml::Table>;

    #[test]
    fn each_check_reports_the_line_of_its_value() {
        let start = "schema = 1\n[board]\nname = 'a'\n";
        let device = "[[opencl.devices]]\nname = 'x'\n";
        let rail = "[power]\nscope = 'soc-rails'\n[[power.rails]]\nfamily = 'ina2xx'\ndomain = 'gpu'\ncounted = true\n";
        let cluster = "[[cpu.clusters]]\nname = 'big'\ncores = 2\n";
        for (text, line, key) in [
            ("memory_bytes = 0".to_owned(), 4, "board.memory_bytes"),
            ("memory_bandwidth_mega_bytes_per_s = 0".to_owned(), 4, "board.memory_bandwidth"),
            ("[detect]\ndevice_tree = ['ab', 'a b']".to_owned(), 5, "detect.device_tree"),
            ("[detect]\ndevice_tree = ['ab*']".to_owned(), 5, "detect.device_tree"),
            ("[cpu]\nthreads = 4097".to_owned(), 5, "cpu.threads"),
            ("[cpu]\nbatch = 0".to_owned(), 5, "cpu.batch"),
            ("[cpu]\nbatch = 16777217".to_owned(), 5, "cpu.batch"),
            ("[cpu]\ncpus = '0-2'\n[[cpu.clusters]]\nname = 'b'\ncores = 2\ncpus = '0-1'".to_owned(), 5, "cpu.cpus"),
            (format!("{cluster}{cluster}"), 8, "cpu.clusters[1].name"),
            ("[[cpu.clusters]]\nname = 'big'\ncores = 0".to_owned(), 6, "cpu.clusters[0].cores"),
            (format!("{cluster}max_mhz = 0"), 7, "cpu.clusters[0].max_mhz"),
            (format!("{cluster}capacity = 1025"), 7, "cpu.clusters[0].capacity"),
            (format!("{cluster}cpus = '0-2'"), 7, "cpu.clusters[0].cpus"),
            (format!("{cluster}cpus = '0-1'\n[[cpu.clusters]]\nname = 'c'\ncores = 1\ncpus = '1'"), 11, "cpu.clusters[1].cpus"),
            (format!("{device}compute_units = 0"), 6, "opencl.devices[0].compute_units"),
            (format!("{device}max_alloc_bytes = 3\nglobal_bytes = 2"), 6, "opencl.devices[0].max_alloc_bytes"),
            (format!("{device}bgc = true\nquirks = ['local-is-global']"), 6, "opencl.devices[0].bgc"),
            (format!("{device}{device}"), 7, "opencl.devices[1].name"),
            (format!("{device}{device}via = 'rusticl'"), 7, "opencl.devices[1].name"),
            (format!("{device}via = 'rusticl'\n{device}via = 'rusticl'"), 8, "opencl.devices[1].name"),
            (format!("{device}work_group = 48"), 6, "opencl.devices[0].work_group"),
            (format!("{device}work_group = 64\nmax_work_group = 32"), 6, "opencl.devices[0].work_group"),
            (format!("{device}memory_way = 'svm-fine'\nquirks = ['not-coherent']"), 6, "opencl.devices[0].memory_way"),
            (format!("{device}memory_way = 'alloc-host-ptr'\nquirks = ['map-copies']"), 6, "opencl.devices[0].memory_way"),
            ("[adaptive.top_down]\nsplit_from = 9\nup_to = 9".to_owned(), 6, "adaptive.top_down.up_to"),
            ("[adaptive.bottom_up]\nup_to = 0".to_owned(), 5, "adaptive.bottom_up.up_to"),
            ("[adaptive.top_down]\ngpu_permille = 1000".to_owned(), 5, "adaptive.top_down.gpu_permille"),
            ("[adaptive.bottom_up]\ngpu_permille = 0".to_owned(), 5, "adaptive.bottom_up.gpu_permille"),
            ("[adaptive.handover]\nfixed_us = -1.0".to_owned(), 5, "adaptive.handover.fixed_us"),
            ("[speeds]\nbgc_mega_edges_per_s = 0.0".to_owned(), 5, "speeds.bgc_mega_edges_per_s"),
            ("[speeds]\nlaunch_us = inf".to_owned(), 5, "speeds.launch_us"),
            ("[power.watts]\ntc = 2.0\nbg = -3.0".to_owned(), 6, "power.watts.bg"),
            ("[power.watts]\ntg = nan".to_owned(), 5, "power.watts.tg"),
            (rail.to_owned(), 6, "power.rails[0].id"),
            (format!("{rail}id = 'x'\nsign = 0"), 11, "power.rails[0].sign"),
            (format!("{rail}id = 'x'\nscale = -1.0"), 11, "power.rails[0].scale"),
            (format!("{rail}id = 'x'").replace("scope = 'soc-rails'", ""), 4, "power.scope"),
            (format!("{rail}id = 'x'").replace("counted = true", "counted = false"), 5, "power.scope"),
            (
                format!("{rail}id = 'x'\n[[power.rails]]\nfamily = 'ina2xx'\nid = 'x'\ndomain = 'cpu'\ncounted = true"),
                12,
                "power.rails[1].family",
            ),
        ] {
            match Plain::parse(&format!("{start}{text}"), "my.toml").unwrap_err() {
                DocumentError::Check { file, line: found_line, key: found, .. } => {
                    assert_eq!((file.as_str(), found_line), ("my.toml", line), "{text}");
                    assert!(found.starts_with(key), "{found} for {text}");
                }
                other => panic!("{text}: {other}"),
            }
        }
        for text in [
            "[cpu]\nthreads = 4096",
            "[adaptive.top_down]\ngpu_from = 0\ngpu_permille = 1\n[adaptive.bottom_up]\ngpu_permille = 999",
            "[adaptive.top_down]\nup_to = 1",
            "[adaptive.top_down]\ngpu_from = 4_294_967_296\nsplit_from = 4_294_967_296\nup_to = 4_294_967_296",
            &format!("{device}via = 'rusticl'\n{device}"),
            &format!("{cluster}capacity = 1024\ncpus = '0-3'"),
            &format!("{rail}label = 'VDD_G3D'\nsign = -1\nscale = 0.001"),
        ] {
            Plain::parse(&format!("{start}{text}"), "my.toml").unwrap();
        }
    }
}
