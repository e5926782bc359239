//! The training itself, by candle's automatic differentiation.

use candle_core::{DType, Device, Result as CandleResult, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};

use super::{Example, SearchSample, examples};
use socbfs_io::generate::hash::Seeded;
use socbfs_policy::{
    Mlp,
    mlp::{NetworkKind, Unit, Weights, WeightsError},
};

/// How to train.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitOptions {
    /// Seed of the first weights, and of the choice of graphs that judge SURF's attempts.
    pub seed: u64,
    /// Steps of each of the [`NETWORKS`]; each step uses all examples.
    pub steps: usize,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self { seed: 1, steps: 3000 }
    }
}

/// Why the training failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// There are too few graphs.
    #[error("too few graphs to learn from and to choose by: {0}, but at least 5 are needed")]
    TooFewGraphs(usize),
    /// The library failed.
    #[error("the training failed")]
    Candle(#[from] candle_core::Error),
    /// The learned weights are not a network.
    #[error("the training did not converge")]
    Weights(#[from] WeightsError),
}

/// Number of networks trained from different first weights. For SURF, the best one is kept. For our form, each network has its share of the
/// hidden units; together they are one network, their mean, which depends less on chance.
pub const NETWORKS: usize = 4;

/// Least number of graphs: one judges, and the network learns from the others.
pub const LEAST_GRAPHS: usize = 5;

/// The first learning rate, which falls along a cosine.
const RATE: f64 = 0.02;
/// Weight decay: it pulls weights that decide nothing to zero.
const DECAY: f64 = 0.1;
/// Steps between evaluations on the graphs that judge.
const LOOK: usize = 50;

/// Trains a network on `searches`. For [`NetworkKind::Surf`] it is the best of [`NETWORKS`], at its best step. A fifth of the graphs
/// judges, and no network learns from those. For [`NetworkKind::Mlp`] it is the mean of the networks after all steps, which learn from all
/// graphs. `progress` is called with the number of steps done since its last call; in all that is [`NETWORKS`] times `steps`. The same
/// searches and options give the same bits on one machine.
///
/// # Errors
/// [`FitError`].
pub fn fit(form: NetworkKind, searches: &[&SearchSample], options: &FitOptions, progress: &dyn Fn(u64)) -> Result<Mlp, FitError> {
    let graphs = super::names(searches).len();
    if graphs < LEAST_GRAPHS {
        return Err(FitError::TooFewGraphs(graphs));
    }
    let weights = match form {
        NetworkKind::Surf => best(searches, options, progress)?,
        NetworkKind::Mlp => mean(searches, options, progress)?,
    };
    Ok(Mlp::new(&weights)?)
}

/// The best of several SURF networks.
fn best(searches: &[&SearchSample], options: &FitOptions, progress: &dyn Fn(u64)) -> Result<Weights, FitError> {
    let form = NetworkKind::Surf;
    let (learn, choose) = split(searches, options.seed);
    let [learn, choose] = [learn, choose].map(|searches| examples(form, &searches));
    let scale = Scale::of(&learn);
    let (learn, choose) = (Batch::new(&learn, &scale)?, Batch::new(&choose, &scale)?);
    let mut best: Option<(f64, Weights)> = None;
    for attempt in 0..NETWORKS {
        let net = Net::new(form.sizes(), options.seed, attempt as u64)?;
        net.learn(&learn, options.steps, &mut |step| {
            if step % LOOK == LOOK - 1 || step + 1 == options.steps {
                let loss = choose.loss(&net)?.to_scalar::<f64>()?;
                if loss.is_finite() && best.as_ref().is_none_or(|(least, _)| loss < *least) {
                    best = Some((loss, net.weights(form, &scale)?));
                }
                progress((step % LOOK + 1) as u64);
            }
            Ok(())
        })?;
    }
    best.map(|(_, weights)| weights).ok_or_else(|| WeightsError::NotFinite("the loss".to_owned()).into())
}

/// The mean of several of our networks. The output is a sum over hidden units, so this mean is a network with all their units.
fn mean(searches: &[&SearchSample], options: &FitOptions, progress: &dyn Fn(u64)) -> Result<Weights, FitError> {
    let form = NetworkKind::Mlp;
    let (inputs, hidden) = form.sizes();
    let learn = examples(form, searches);
    let scale = Scale::of(&learn);
    let learn = Batch::new(&learn, &scale)?;
    let mut all = Weights { schema: 1, policy: form, bias: 0.0, hidden: Vec::with_capacity(hidden) };
    for attempt in 0..NETWORKS {
        let net = Net::new((inputs, hidden / NETWORKS), options.seed, attempt as u64)?;
        net.learn(&learn, options.steps, &mut |_| {
            progress(1);
            Ok(())
        })?;
        let one = net.weights(form, &scale)?;
        let share = |value: f32| value / NETWORKS as f32;
        all.bias += share(one.bias);
        all.hidden.extend(one.hidden.into_iter().map(|unit| Unit { output: share(unit.output), ..unit }));
    }
    Ok(all)
}

/// Divides the searches into those to learn from and those of the graphs that judge: a fifth of the graphs, which `seed` draws.
fn split<'s>(searches: &[&'s SearchSample], seed: u64) -> (Vec<&'s SearchSample>, Vec<&'s SearchSample>) {
    let chosen = super::every_fifth(&super::names(searches), seed);
    searches.iter().partition(|search| !chosen.contains(&search.graph.as_str()))
}

/// Scales each input to mean 0 and deviation 1 for the training. Afterwards the first layer absorbs the scale, so that the network takes
/// unscaled inputs.
struct Scale {
    mean: Vec<f64>,
    deviation: Vec<f64>,
}

impl Scale {
    fn of(examples: &[Example]) -> Self {
        let inputs = examples.first().map_or(0, |example| example.inputs.len());
        let total: f64 = examples.iter().map(|example| example.weight).sum();
        let average = |value: &dyn Fn(&Example) -> f64| examples.iter().map(|example| example.weight * value(example)).sum::<f64>() / total;
        let mean: Vec<f64> = (0..inputs).map(|i| average(&|example| f64::from(example.inputs[i]))).collect();
        let deviation = (0..inputs)
            .map(|i| average(&|example| (f64::from(example.inputs[i]) - mean[i]).powi(2)).sqrt())
            .map(|deviation| if deviation > 1e-9 { deviation } else { 1.0 })
            .collect();
        Self { mean, deviation }
    }
}

/// Examples as tensors.
struct Batch {
    inputs: Tensor,
    labels: Tensor,
    weights: Tensor,
}

impl Batch {
    fn new(examples: &[Example], scale: &Scale) -> CandleResult<Self> {
        let (device, rows, columns) = (&Device::Cpu, examples.len(), scale.mean.len());
        let total: f64 = examples.iter().map(|example| example.weight).sum();
        let scaled = |example: &Example| -> Vec<f64> {
            example.inputs.iter().zip(scale.mean.iter().zip(&scale.deviation)).map(|(&x, (m, d))| (f64::from(x) - m) / d).collect()
        };
        Ok(Self {
            inputs: Tensor::from_vec(examples.iter().flat_map(scaled).collect(), (rows, columns), device)?,
            labels: Tensor::from_vec(examples.iter().map(|example| f64::from(u8::from(example.bottom_up))).collect(), rows, device)?,
            weights: Tensor::from_vec(examples.iter().map(|example| example.weight / total).collect(), rows, device)?,
        })
    }

    /// Weighted binary cross-entropy: ln(1 + e^z) - y z, in a form that can't overflow.
    fn loss(&self, net: &Net) -> CandleResult<Tensor> {
        let z = net.logits(&self.inputs)?;
        let softplus = (z.relu()? + (z.abs()?.neg()?.exp()? + 1.0)?.log()?)?;
        ((softplus - (&z * &self.labels)?)? * &self.weights)?.sum_all()
    }
}

/// A network in training.
struct Net {
    weights: Var,
    biases: Var,
    outputs: Var,
    bias: Var,
}

impl Net {
    /// First weights as in He et al. 2015: uniform, with variance 2 / inputs.
    fn new((inputs, hidden): (usize, usize), seed: u64, attempt: u64) -> CandleResult<Self> {
        let mut numbers = Seeded::new(seed).item(attempt);
        let mut uniform = |count: usize, fan: usize| -> Vec<f64> {
            let limit = (6.0 / fan as f64).sqrt();
            (0..count).map(|_| (numbers.below(1 << 52) as f64 / (1_u64 << 51) as f64 - 1.0) * limit).collect()
        };
        let var =
            |values: Vec<f64>, rows: usize, columns: usize| Var::from_tensor(&Tensor::from_vec(values, (rows, columns), &Device::Cpu)?);
        Ok(Self {
            weights: var(uniform(inputs * hidden, inputs), inputs, hidden)?,
            biases: Var::zeros((1, hidden), DType::F64, &Device::Cpu)?,
            outputs: var(uniform(hidden, hidden), hidden, 1)?,
            bias: Var::zeros((1, 1), DType::F64, &Device::Cpu)?,
        })
    }

    fn vars(&self) -> Vec<Var> {
        vec![self.weights.clone(), self.biases.clone(), self.outputs.clone(), self.bias.clone()]
    }

    /// Takes `steps` steps; `done` is called after each with its index.
    fn learn(&self, batch: &Batch, steps: usize, done: &mut dyn FnMut(usize) -> CandleResult<()>) -> CandleResult<()> {
        let parameters = ParamsAdamW { lr: RATE, weight_decay: DECAY, ..ParamsAdamW::default() };
        let mut optimizer = AdamW::new(self.vars(), parameters)?;
        for step in 0..steps {
            let passed = step as f64 / steps as f64;
            optimizer.set_learning_rate(RATE * 0.5 * (1.0 + (std::f64::consts::PI * passed).cos()));
            optimizer.backward_step(&batch.loss(self)?)?;
            done(step)?;
        }
        Ok(())
    }

    fn logits(&self, inputs: &Tensor) -> CandleResult<Tensor> {
        let hidden = inputs.matmul(&self.weights)?.broadcast_add(&self.biases)?.relu()?;
        hidden.matmul(&self.outputs)?.broadcast_add(&self.bias)?.squeeze(1)
    }

    /// The learned weights, for unscaled inputs.
    fn weights(&self, form: NetworkKind, scale: &Scale) -> CandleResult<Weights> {
        let weights = self.weights.to_vec2::<f64>()?;
        let (biases, outputs) = (self.biases.to_vec2::<f64>()?, self.outputs.to_vec2::<f64>()?);
        let hidden = (0..outputs.len())
            .map(|h| {
                let of_input: Vec<f64> = weights.iter().zip(&scale.deviation).map(|(row, deviation)| row[h] / deviation).collect();
                let shift: f64 = of_input.iter().zip(&scale.mean).map(|(weight, mean)| weight * mean).sum();
                Unit {
                    weights: of_input.iter().map(|&weight| weight as f32).collect(),
                    bias: (biases[0][h] - shift) as f32,
                    output: outputs[h][0] as f32,
                }
            })
            .collect();
        Ok(Weights { schema: 1, policy: form, bias: self.bias.to_vec2::<f64>()?[0][0] as f32, hidden })
    }
}
