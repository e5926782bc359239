//! What a planner would decide at levels that have not been reached yet.
//!
//! Waiting for a device after every level costs more than many levels do. Where counts alone determine what the planner decides, a device
//! can be given several levels at once, and find out by itself from which on the planner has to be asked again.

use super::LevelPlan;

/// A sum over what is counted of a search when a level is planned ([`LevelStats`](super::LevelStats)).
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
    /// Factor of their arcs.
    pub unvisited_edges: f32,
}

impl Linear {
    /// Always above 0.
    pub const ALWAYS: Self =
        Self { constant: 1.0, frontier_vertices: 0.0, frontier_edges: 0.0, unvisited_vertices: 0.0, unvisited_edges: 0.0 };
    /// Never above 0.
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

/// A plan, and where the planner would surely decide for it without a sample: where all forms are above 0. (They are evaluated with 24
/// bits; where rounding could matter they count as not above 0.)
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Surely {
    /// The plan.
    pub plan: LevelPlan,
    /// The forms.
    pub above_zero: [Linear; Ahead::FORMS],
}

impl Surely {
    /// `plan`, whatever is counted.
    pub const fn always(plan: LevelPlan) -> Self {
        Self { plan, above_zero: [Linear::ALWAYS; Ahead::FORMS] }
    }

    /// `plan` where these are above 0 (`None`: they are too many).
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
    /// Its arcs.
    pub arcs: u64,
    /// Plans, at most one of which holds at a time.
    pub plans: [Option<Surely>; Ahead::PLANS],
    /// Where no plan is sure the planner may want a sample of unvisited vertices.
    pub samples: bool,
    /// It may want one of the hubs in the frontier.
    pub hubs: bool,
}

impl Ahead {
    /// Plans in it, at most.
    pub const PLANS: usize = 2;
    /// Forms of each plan.
    pub const FORMS: usize = 8;
}
