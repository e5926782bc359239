//! Networks trained on the machine of a calibration.

use serde::{Deserialize, Serialize};

use crate::board::Violation;
use socbfs_policy::{
    Mlp,
    mlp::{NetworkKind, Unit, Weights, WeightsError},
};

/// A network with weights made by `socbfs train`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trained {
    /// Version of socbfs that trained the network.
    pub version: String,
    /// Commit of that version, with "+" where the source differs from it.
    pub commit: String,
    /// When it was trained, RFC 3339 in UTC.
    pub date: String,
    /// The command line of the training.
    pub command: Vec<String>,
    /// Whether it was trained for levels of the device rather than of the CPU.
    pub on_device: bool,
    /// Number of graphs that it learned from.
    pub graphs: usize,
    /// Number of held-out graphs that judged it.
    pub held_out: usize,
    /// Share of their levels whose direction it gets right, as SURF counts.
    pub accuracy: f64,
    /// Share of their saveable time that it saves.
    pub reduced_time: f64,
    /// The weights.
    pub network: Weights,
}

impl Trained {
    /// The network.
    ///
    /// # Errors
    /// [`WeightsError`] if the weights are of another form than `form`, or a size or value is invalid. (Weights of a calibration that was
    /// read are valid.)
    pub fn network(&self, form: NetworkKind) -> Result<Mlp, WeightsError> {
        Mlp::of(form, &self.network)
    }

    /// Checks the values. The key of a [`Violation`] is relative to this network's table.
    pub(super) fn validate(&self, form: NetworkKind) -> Result<(), Violation> {
        for (key, share) in [("accuracy", self.accuracy), ("reduced_time", self.reduced_time)] {
            if !(0.0..=1.0).contains(&share) {
                return Err(Violation { key: key.to_owned(), reason: format!("is {share}; it must be a share of the whole, 0 to 1") });
            }
        }
        self.network(form).map(drop).map_err(|error| {
            let (inputs, _) = form.sizes();
            let finite = |values: &[f32]| values.iter().all(|value| value.is_finite());
            let is_bad = |unit: &Unit| unit.weights.len() != inputs || !finite(&unit.weights) || !finite(&[unit.bias, unit.output]);
            let unit = match error {
                WeightsError::Size { .. } | WeightsError::NotFinite(_) => self.network.hidden.iter().position(is_bad),
                _ => None,
            };
            let key = unit.map_or_else(|| "network".to_owned(), |unit| format!("network.hidden[{unit}]"));
            Violation { key, reason: error.to_string() }
        })
    }
}
