//! The decisions of a planner for levels that have not been reached yet.
//!
//! Waiting for a device after every level often takes longer than the level itself. Where counts alone determine the plan, a device can run
//! several levels without waiting for the host. It finds out by itself at which level it needs the planner again.

use super::LevelPlan;

/// A linear form over the counts that are known when a level is planned ([`LevelStats`](super::LevelStats)).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Linear {
    /// A constant.
    pub constant: f32,
    /// Factor of the frontier's vertices.
    pub frontier_vertices: f32,
    /// Factor of the arcs that leave the frontier.
    pub frontier_edges: f32,
    /// Factor of the vertices not yet visited.
    pub unvisited_vertices: f32,
    /// Factor of the arcs of vertices not yet visited.
    pub unvisited_edges: f32,
}

impl Linear {
    /// The form that is always above 0.
    pub const ALWAYS: Self =
        Self { constant: 1.0, frontier_vertices: 0.0, frontier_edges: 0.0, unvisited_vertices: 0.0, unvisited_edges: 0.0 };
    /// The form that is never above 0.
    pub const NEVER: Self = Self { constant: -1.0, ..Self::ALWAYS };

    fn with(self, other: Self, combine: impl Fn(f32, f32) -> f32) -> Self {
        Self {
            constant: combine(self.constant, other.constant),
            frontier_vertices: combine(self.frontier_vertices, other.frontier_vertices),
            frontier_edges: combine(self.frontier_edges, other.frontier_edges),
            unvisited_vertices: combine(self.unvisited_vertices, other.unvisited_vertices),
            unvisited_edges: combine(self.unvisited_edges, other.unvisited_edges),
        }
    }
}

impl std::ops::Add for Linear {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, |a, b| a + b)
    }
}

impl std::ops::Sub for Linear {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.with(other, |a, b| a - b)
    }
}

impl std::ops::Mul<f32> for Linear {
    type Output = Self;

    fn mul(self, factor: f32) -> Self {
        self.with(self, |a, _| factor * a)
    }
}

/// A plan, and the condition under which the planner is sure to choose it without a sample: all forms are above 0. (Forms are evaluated
/// with 24 bits; a form whose sign could depend on rounding counts as not above 0.)
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Surely {
    /// The plan.
    pub plan: LevelPlan,
    /// The forms.
    pub above_zero: [Linear; Ahead::FORMS],
}

impl Surely {
    /// `plan`, whatever the counts are.
    pub const fn always(plan: LevelPlan) -> Self {
        Self { plan, above_zero: [Linear::ALWAYS; Ahead::FORMS] }
    }

    /// `plan` where all of `forms` are above 0 (`None`: there are more than [`Ahead::FORMS`]).
    pub fn when(plan: LevelPlan, forms: impl IntoIterator<Item = Linear>) -> Option<Self> {
        let mut surely = Self::always(plan);
        for (at, form) in forms.into_iter().enumerate() {
            *surely.above_zero.get_mut(at)? = form;
        }
        Some(surely)
    }
}

/// The decisions of a planner for the levels after the current one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ahead {
    /// Vertices of the searched structure, as the planner counts them.
    pub vertices: u64,
    /// Arcs of the searched structure.
    pub arcs: u64,
    /// Sure plans. The conditions of at most one of them hold at a time.
    pub plans: [Option<Surely>; Ahead::PLANS],
    /// The planner may want a sample of unvisited vertices where no plan is sure.
    pub samples: bool,
    /// The planner may want a sample of the hubs in the frontier where no plan is sure.
    pub hubs: bool,
}

impl Ahead {
    /// Maximum number of sure plans.
    pub const PLANS: usize = 2;
    /// Number of forms of each plan.
    pub const FORMS: usize = 8;
}
