//! Detection of the board: reads the system's description of the machine, and finds the profile that fits it best.

use std::{cmp::Reverse, path::Path};

use serde::{Serialize, de::IgnoredAny};

use socbfs_power::Pattern;

use super::{Board, Detect, DocumentError, GENERIC, SHIPPED};
use socbfs_machine::{self as machine, line, processor};

/// The system's description of the machine. A file that can't be read gives no value.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Evidence {
    /// `compatible` of the device tree's root: the board first, then its chip.
    pub device_tree: Vec<String>,
    /// `model` of the device tree's root.
    pub model: Option<String>,
    /// DMI's `sys_vendor`.
    pub dmi_vendor: Option<String>,
    /// DMI's `product_name`.
    pub dmi_product: Option<String>,
    /// DMI's `board_name`.
    pub dmi_board: Option<String>,
    /// `model name` of the first processor.
    pub cpu_model: Option<String>,
}

/// A profile that fits the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// Name of the profile.
    pub name: &'static str,
    /// The properties of the machine that it fits, in words.
    pub reason: String,
}

/// The result of a detection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Detection {
    /// Name of the profile that fits best; [`GENERIC`] if none fits.
    pub name: &'static str,
    /// The reason for it, in words.
    pub reason: String,
    /// Profiles that fit less well, the best first.
    pub others: Vec<Candidate>,
    /// The description of the machine that was compared.
    pub evidence: Evidence,
}

/// How well a profile fits: the larger the better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// The processor's name matches, with this many literal characters.
    Cpu { literal: usize },
    /// DMI matches, in this many fields, which together match this many literal characters.
    Dmi { fields: usize, literal: usize },
    /// The compatible string at this index matches: index 0 names the board, the last index its chip family. The model names the board too.
    DeviceTree { place: Reverse<usize> },
}

/// Finds the compiled-in profile that fits the machine best. The machine's files are below `root` (`/` on a running system). A profile that
/// names a string of the device tree wins over one that matches DMI, and that wins over one that matches the processor. Among several, the
/// most specific one wins; among equals, the first by name.
///
/// # Errors
/// If a compiled-in profile can't be read, which a test rules out.
///
/// ```
/// use socbfs_boards::board;
///
/// # let machine = tempfile::tempdir()?;
/// # let root = machine.path();
/// // `Path::new("/")` is the running machine; a copy of another one's files may lie elsewhere.
/// std::fs::create_dir_all(root.join("proc/device-tree"))?;
/// std::fs::write(root.join("proc/device-tree/compatible"), "radxa,rock-5b\0rockchip,rk3588\0")?;
/// let detection = board::detect(root)?;
/// assert_eq!(detection.name, "rk3588");
/// println!("{}", detection.reason);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn detect(root: &Path) -> Result<Detection, DocumentError> {
    fitting(Evidence::read(root))
}

/// Finds the profile that fits `evidence` best.
fn fitting(evidence: Evidence) -> Result<Detection, DocumentError> {
    let mut fits = Vec::new();
    for &(name, text) in SHIPPED {
        let board = Board::<IgnoredAny>::parse(text, name)?;
        if let Some((fit, reason)) = evidence.fit(&board.detect) {
            fits.push((Reverse(fit), Candidate { name, reason }));
        }
    }
    fits.sort_by(|(a, first), (b, second)| a.cmp(b).then_with(|| first.name.cmp(second.name)));
    let mut candidates = fits.into_iter().map(|(_, candidate)| candidate);
    let best = candidates.next().unwrap_or_else(|| Candidate { name: GENERIC, reason: evidence.unknown() });
    Ok(Detection { name: best.name, reason: best.reason, others: candidates.collect(), evidence })
}

impl Evidence {
    /// Reads the description from the files below `root`.
    pub fn read(root: &Path) -> Self {
        let tree = |name: &str| {
            let places = [root.join("proc/device-tree").join(name), root.join("sys/firmware/devicetree/base").join(name)];
            places.iter().map(|place| strings(place)).find(|strings| !strings.is_empty()).unwrap_or_default()
        };
        let dmi = |name: &str| line(root.join("sys/class/dmi/id").join(name));
        Self {
            device_tree: tree("compatible"),
            model: tree("model").into_iter().next(),
            dmi_vendor: dmi("sys_vendor"),
            dmi_product: dmi("product_name"),
            dmi_board: dmi("board_name"),
            cpu_model: processor(root).get("model name").map(str::to_owned),
        }
    }

    /// The reason why a profile fits, if it does.
    #[cfg(test)]
    pub(crate) fn fits(&self, detect: &Detect) -> Option<String> {
        self.fit(detect).map(|(_, reason)| reason)
    }

    /// How well a profile fits and why, if it does.
    fn fit(&self, detect: &Detect) -> Option<(Fit, String)> {
        self.fit_tree(detect).or_else(|| self.fit_dmi(detect)).or_else(|| self.fit_cpu(detect))
    }

    fn fit_tree(&self, detect: &Detect) -> Option<(Fit, String)> {
        let is_listed = |string: &String| detect.device_tree.iter().any(|listed| listed.eq_ignore_ascii_case(string));
        let compatible = self.device_tree.iter().position(is_listed).map(|place| (place, self.device_tree[place].clone()));
        let model = self.model.as_ref().filter(|model| longest(&detect.device_tree_model, model).is_some());
        let model = model.map(|model| (0, format!("model {model:?}")));
        // Of two equals, the first is the minimum.
        let (place, found) = compatible.into_iter().chain(model).min_by_key(|(place, _)| *place)?;
        Some((Fit::DeviceTree { place: Reverse(place) }, format!("the device tree says {found}")))
    }

    fn fit_dmi(&self, detect: &Detect) -> Option<(Fit, String)> {
        let (mut fields, mut literal, mut words) = (0, 0, Vec::new());
        for (name, found, patterns) in [
            ("vendor", &self.dmi_vendor, &detect.dmi_vendor),
            ("product", &self.dmi_product, &detect.dmi_product),
            ("board", &self.dmi_board, &detect.dmi_board),
        ] {
            if patterns.is_empty() {
                continue;
            }
            let found = found.as_deref()?;
            literal += longest(patterns, found)?;
            fields += 1;
            words.push(format!("{name} {found:?}"));
        }
        if fields == 0 { None } else { Some((Fit::Dmi { fields, literal }, format!("DMI says {}", words.join(", ")))) }
    }

    fn fit_cpu(&self, detect: &Detect) -> Option<(Fit, String)> {
        let found = self.cpu_model.as_deref()?;
        let literal = longest(&detect.cpu_model, found)?;
        Some((Fit::Cpu { literal }, format!("the processor is {found:?}")))
    }

    /// Describes a machine that no profile fits.
    fn unknown(&self) -> String {
        let seen = [
            (!self.device_tree.is_empty()).then(|| format!("device tree {}", self.device_tree.join(" "))),
            self.model.as_ref().map(|model| format!("model {model:?}")),
            self.dmi_product.as_ref().map(|product| format!("DMI product {product:?}")),
            self.cpu_model.as_ref().map(|model| format!("processor {model:?}")),
        ];
        let seen: Vec<_> = seen.into_iter().flatten().collect();
        if seen.is_empty() {
            return "no profile fits: there is neither a device tree nor DMI nor the name of a processor".to_owned();
        }
        format!("no profile fits: {}", seen.join(", "))
    }
}

/// Literal characters of the longest pattern that matches.
fn longest(patterns: &[Pattern], name: &str) -> Option<usize> {
    patterns.iter().filter(|pattern| pattern.matches(name)).map(Pattern::literal).max()
}

/// The strings of a device tree's property, each ended by a zero byte.
fn strings(path: &Path) -> Vec<String> {
    let bytes = machine::bytes(path).unwrap_or_default();
    bytes
        .split(|&byte| byte == 0)
        .map(|string| String::from_utf8_lossy(string).trim().to_owned())
        .filter(|string| !string.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> Detection {
        detect(crate::fixtures::machine(&format!("board/{name}")).path()).unwrap()
    }

    #[test]
    fn every_board_is_detected_from_its_files() {
        let machines = [
            ("odroid-xu4", "odroid-xu4", "hardkernel,odroid-xu4"),
            ("odroid-xu3", "odroid-xu3", "hardkernel,odroid-xu3"),
            ("odroid-n2-plus", "odroid-n2", "hardkernel,odroid-n2-plus"),
            ("dragonboard-410c", "snapdragon-db410c", "qcom,apq8016-sbc"),
            ("dragonboard-845c", "snapdragon-845", "thundercomm,db845c"),
            ("rb5", "snapdragon-rb5", "qcom,qrb5165-rb5"),
            ("jetson-agx-orin", "jetson-orin", "nvidia,tegra234"),
            ("jetson-orin-acpi", "jetson-orin", "DMI says vendor \"NVIDIA\", product"),
            ("raspberry-pi-5", "raspberry-pi-5", "raspberrypi,5-model-b"),
            ("rock-5b", "rk3588", "rockchip,rk3588"),
            ("a10-7850k", "amd-a10-7850k", "AMD A10-7850K"),
            ("ryzen-2400g", "amd-ryzen-2400g", "Ryzen 5 2400G"),
            ("i7-4790", "intel-i7-4790", "i7-4790 CPU"),
            ("core-ultra", "intel-core-ultra", "Ultra 7 155H"),
            ("steam-deck", "steam-deck", "DMI says vendor \"Valve\", product \"Galileo\""),
            ("framework-desktop", "framework-desktop", "DMI says vendor \"Framework\", product"),
        ];
        for (machine, board, reason) in machines {
            let found = fixture(machine);
            assert_eq!(found.name, board, "{machine}: {found:?}");
            assert!(found.reason.contains(reason), "{machine}: {}", found.reason);
        }
        // Every profile except the generic one can be detected.
        for (name, text) in SHIPPED {
            let detect = Board::<IgnoredAny>::parse(text, name).unwrap().detect;
            assert_eq!(detect == Detect::default(), *name == GENERIC, "{name}");
            assert_eq!(machines.iter().any(|(_, board, _)| board == name), *name != GENERIC, "{name} has no row above");
        }
    }

    /// Root nodes of makers' own kernels, as these have them; the comments in the profiles name the files.
    #[test]
    fn boards_are_detected_under_the_kernels_of_their_makers() {
        for (board, compatible, model) in [
            ("odroid-n2", &["amlogic, g12b"][..], "Hardkernel ODROID-N2"),
            ("odroid-n2", &["amlogic, g12b"], "Hardkernel ODROID-N2Plus"),
            ("odroid-n2", &["amlogic, g12b"], "Hardkernel ODROID-N2L"),
            // Another board with the chip.
            (GENERIC, &["amlogic, g12b"], "Khadas VIM3"),
            ("odroid-xu3", &["Hardkernel,odroid-xu3"], "Hardkernel odroid-xu3 board based on EXYNOS5422"),
            ("odroid-xu4", &["hardkernel,odroid-xu4", "samsung,exynos5800", "samsung,exynos5"], "Hardkernel Odroid XU4"),
            ("snapdragon-db410c", &["qcom,apq8016", "qcom,sbc"], "Qualcomm Technologies, Inc. APQ 8016 SBC"),
            (GENERIC, &["schneider,apq8016-hmibsc", "qcom,apq8016"], "Schneider Electric HMIBSC Board"),
            ("snapdragon-845", &["qcom,sda845-mtp", "qcom,sda845", "qcom,mtp"], "Qualcomm Technologies, Inc. sda845 v2.1 TurboX-SOM_V01"),
            ("snapdragon-rb5", &["qcom,kona-iot", "qcom,kona", "qcom,iot"], "Qualcomm Technologies,Inc. kona v2.1 IOT RB5"),
            ("snapdragon-rb5", &["qcom,kona-iot", "qcom,kona", "qcom,iot"], "Qualcomm Technologies, Inc. qrb5165 IOT RB5"),
            // The same board with a smaller chip.
            (GENERIC, &["qcom,kona-iot"], "Qualcomm Technologies, Inc. kona-7230-iot v2.1 SoC"),
            ("rk3588", &["rockchip,rk3588s-orangepi-5", "rockchip,rk3588"], "Orange Pi 5"),
            ("jetson-orin", &["nvidia,p3768-0000+p3767-0005-super", "nvidia,p3767-0005", "nvidia,tegra234"], "NVIDIA Jetson Orin Nano"),
            ("jetson-orin", &["nvidia,p3737-0000+p3701-0000", "nvidia,tegra234", "nvidia,tegra23x"], "NVIDIA Orin Jetson"),
            ("raspberry-pi-5", &["raspberrypi,500", "brcm,bcm2712"], "Raspberry Pi 500 Rev 1.0"),
        ] {
            let device_tree = compatible.iter().map(|&string| string.to_owned()).collect();
            let found = fitting(Evidence { device_tree, model: Some(model.into()), ..Evidence::default() }).unwrap();
            assert_eq!(found.name, board, "{model}: {}", found.reason);
        }
    }

    #[test]
    fn other_machines_get_the_generic_profile() {
        let unknown = fixture("raspberry-pi-4");
        assert_eq!((unknown.name, unknown.others.len()), (GENERIC, 0));
        assert!(unknown.reason.contains("no profile fits") && unknown.reason.contains("raspberrypi,4-model-b"), "{}", unknown.reason);
        // The 4790K is not the same processor as the 4790.
        assert_eq!(fixture("i7-4790k").name, GENERIC);
        let nothing = detect(Path::new("/nonexistent")).unwrap();
        assert_eq!((nothing.name, &nothing.evidence), (GENERIC, &Evidence::default()));
    }

    #[test]
    fn the_device_tree_is_read_from_proc_or_from_sys() {
        assert_eq!(fixture("rock-5b").evidence.device_tree, ["radxa,rock-5b", "rockchip,rk3588"]);
        let only_in_sys = fixture("raspberry-pi-5").evidence;
        assert_eq!(only_in_sys.device_tree, ["raspberrypi,5-model-b", "brcm,bcm2712"]);
        assert_eq!(only_in_sys.model.as_deref(), Some("Raspberry Pi 5 Model B Rev 1.0"));
    }

    #[test]
    fn the_most_specific_match_wins() {
        let evidence = Evidence {
            device_tree: vec!["maker,board".into(), "maker,chip".into()],
            model: Some("Maker Board".into()),
            dmi_vendor: Some("Maker".into()),
            dmi_product: Some("Board 5".into()),
            cpu_model: Some("Maker Core 5".into()),
            ..Evidence::default()
        };
        let pattern = |text: &str| vec![text.parse::<Pattern>().unwrap()];
        let tree = |name: &str| Detect { device_tree: vec![name.into()], ..Detect::default() };
        let fit = |detect: Detect| evidence.fit(&detect).unwrap().0;
        let ascending = [
            fit(Detect { cpu_model: pattern("Maker *"), ..Detect::default() }),
            fit(Detect { cpu_model: pattern("Maker Core *"), ..Detect::default() }),
            fit(Detect { dmi_product: pattern("Board*"), ..Detect::default() }),
            fit(Detect { dmi_product: pattern("Board 5"), ..Detect::default() }),
            fit(Detect { dmi_vendor: pattern("M*"), dmi_product: pattern("B*"), ..Detect::default() }),
            fit(tree("maker,chip")),
            fit(tree("maker,board")),
        ];
        assert!(ascending.is_sorted(), "{ascending:?}");
        // A model names the board. Where both fit, the reason is the compatible string.
        let model = Detect { device_tree_model: pattern("Maker B*"), ..Detect::default() };
        assert_eq!(fit(model.clone()), fit(tree("maker,board")));
        let both = evidence.fit(&Detect { device_tree: vec!["Maker,board".into()], ..model.clone() }).unwrap();
        assert_eq!(both.1, "the device tree says maker,board");
        let chip_and_model = evidence.fit(&Detect { device_tree: vec!["maker,chip".into()], ..model }).unwrap();
        assert_eq!(chip_and_model.1, "the device tree says model \"Maker Board\"");
        assert_eq!(evidence.fit(&Detect { dmi_vendor: pattern("Maker"), dmi_board: pattern("x*"), ..Detect::default() }), None);
        assert_eq!(evidence.fit(&Detect::default()), None);
    }
}
