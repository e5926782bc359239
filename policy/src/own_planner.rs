//! A planner of the program's own, as a policy: it goes wherever a policy goes.

use socbfs::bfs::{AnyPlanner, Planner, Uses};

use super::{
    PolicyError,
    rule::{Known, LevelDevice, Rule},
};

/// The name for messages and records. The policy is made in code, so it has no text or TOML and is in no list.
const KNOWN: Known =
    Known { kind: "planner", parameters: "", summary: "", from: "", default: |kind| Err(PolicyError::Unknown(kind.to_owned())) };

impl Rule for AnyPlanner {
    fn known(&self) -> &'static Known {
        &KNOWN
    }

    fn uses(&self, _runs: LevelDevice) -> Uses {
        Planner::uses(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;
    use socbfs::bfs::{LevelPlan, LevelStats};

    #[derive(Clone)]
    struct Same;

    impl Planner for Same {
        fn uses(&self) -> Uses {
            Uses::TOGETHER
        }

        fn plan(&mut self, _: &LevelStats) -> LevelPlan {
            LevelPlan::default()
        }
    }

    #[test]
    fn a_planner_is_a_policy() {
        let policy = Policy::planner(Same);
        assert_eq!((policy.kind(), policy.to_string()), ("planner", "planner:Same".to_owned()));
        assert!(policy.needs_device() && policy.runs_on_both() && !policy.decides_directions());
        assert_eq!(policy.clone(), policy);
        assert_ne!(policy, Policy::planner(Same));
        assert!(matches!("planner:Same".parse::<Policy>(), Err(PolicyError::Unknown(_))));
    }
}
