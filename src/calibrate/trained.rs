//! Networks that were trained on the machine of a calibration.

use serde::{Deserialize, Serialize};

use crate::{
    board::Violation,
    policy::{
        Mlp,
        mlp::{Form, Unit, Weights, WeightsError},
    },
};

/// A network with weights of `socbfs train`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trained {
    /// Version of socbfs that trained it.
    pub version: String,
    /// Its commit, with "+" where the source differs from it.
    pub commit: String,
    /// When, RFC 3339 in UTC.
    pub date: String,
    /// The command line.
    pub command: Vec<String>,
    /// Whether it was trained for levels of the device, and not for those of the CPU.
    pub on_device: bool,
    /// Graphs that it learned from.
    pub graphs: usize,
    /// Graphs that it was judged by.
    pub held_out: usize,
    /// Share of their levels whose direction it gets right, as SURF counts.
    pub accuracy: f64,
    /// Share of the time at stake that it saves.
    pub reduced_time: f64,
    /// The weights.
    pub network: Weights,
}

impl Trained {
    /// The network.
    ///
    /// # Errors
    /// [`WeightsError`] where the weights are of another form than `form`, or sizes or values can't be right. (Of a calibration that was
    /// read they are right.)
    pub fn network(&self, form: Form) -> Result<Mlp, WeightsError> {
        Mlp::of(form, &self.network)
    }

    /// Checks the values; a failure is the path of the key below that of the network, and what is wrong.
    pub(super) fn validate(&self, form: Form) -> Result<(), Violation> {
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
