//! The policies by name, for help, completions and errors.

/// A policy that can be asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Known {
    /// Its name: [`Policy::kind`](super::Policy::kind).
    pub kind: &'static str,
    /// What may stand behind the name and a colon ("": nothing).
    pub parameters: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
}

const fn known(kind: &'static str, parameters: &'static str, summary: &'static str) -> Known {
    Known { kind, parameters, summary }
}

/// All that have a name: those of the CPU, those that decide directions, those of a device, those of both.
pub const KNOWN: [Known; 23] = [
    known("auto", "", "the best for the graph and the devices at hand"),
    known("tc", "", "top-down on the CPU"),
    known("bc", "", "bottom-up on the CPU"),
    known("sampled", "WORD,VERTEX,PROBE", "direction by costs that are compared on a sample"),
    known("cost-model", "FORM", "the strategy that should take least, by measured costs; zhang: by the paper's speeds alone"),
    known("alpha-beta", "ALPHA,BETA", "direction by Beamer's rule, with GAP's 15,18"),
    known("gunrock", "DO_A,DO_B", "direction as in Gunrock 1.2, with its 0.001,0.2"),
    known("enterprise", "GAMMA", "direction as in the paper of Enterprise: bottom-up above 0.3 of all hubs"),
    known("enterprise-released", "SHARE", "direction as in its code: bottom-up from 0.3 of all arcs to the end"),
    known("xbfs", "RATIO", "direction as in XBFS: bottom-up from 0.1 of all arcs"),
    known("yasui", "ALPHA,BETA", "Yasui's: alpha-beta on the CPU, with 14,24; its layout is --order degree"),
    known("surf", "", "direction by SURF's neural network, with weights trained here, else ours for the CPU; surf:FILE has others"),
    known("mlp", "", "direction by a neural network of ours, with weights trained here, else ours for the CPU; mlp:FILE has others"),
    known("tg", "", "top-down on the OpenCL device, over a queue"),
    known("tgm", "", "top-down on the device, over a mask"),
    known("bg", "", "bottom-up on the device"),
    known("bgc", "", "bottom-up on the device with hubs in local memory"),
    known("daga", "ALPHA,BETA", "Daga's: top-down on the CPU, bottom-up on the device, with 14,24"),
    known("selective", "EDGES,VERTICES", "the better device of each level, by measured thresholds"),
    known("concurrent", "EDGES,VERTICES,PERMILLE", "CPU and device share large levels, and learn how"),
    known("asynchronous", "EDGES,PERMILLE", "CPU and device search to the end by themselves"),
    known("remis-selective", "VERTICES", "Remis' Selective: the device from 10000 vertices of the frontier on"),
    known("remis-concurrent", "VERTICES,PERMILLE", "Remis' Concurrent: both from there on, by a fixed share"),
];

/// The names with their parameters, for a message.
pub(super) fn names() -> String {
    let name = |known: &Known| match known.parameters {
        "" => known.kind.to_owned(),
        parameters => format!("{}[:{parameters}]", known.kind),
    };
    KNOWN.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{super::Policy, *};

    #[test]
    fn every_name_is_that_of_a_policy() {
        for known in KNOWN {
            let policy: Policy = known.kind.parse().unwrap();
            assert_eq!(policy.kind(), known.kind);
            if known.kind == "cost-model" {
                // A word and no number.
                assert_eq!("cost-model:zhang".parse::<Policy>().unwrap().to_string(), "cost-model:zhang");
                assert!("cost-model:1".parse::<Policy>().is_err());
                continue;
            }
            // As many numbers as there are words are understood, and no other number of them.
            let words = known.parameters.split(',').filter(|word| !word.is_empty()).count();
            let with = |count: usize| format!("{}:{}", known.kind, vec!["1"; count].join(",")).parse::<Policy>();
            assert_eq!(with(words).is_ok(), words > 0, "{known:?}");
            assert!(with(words + 1).is_err(), "{known:?}");
        }
        assert!(names().starts_with("auto, tc, bc, sampled[:WORD,VERTEX,PROBE], "));
    }
}
