//! Power by strategy.

use crate::board::StrategyWatts;
use socbfs::bfs::Strategy;

/// The power of `strategy` in `watts` (`None`: not known).
pub fn watts_of(watts: &StrategyWatts, strategy: Strategy) -> Option<f64> {
    match strategy {
        Strategy::Tc => watts.tc,
        Strategy::Tg => watts.tg,
        Strategy::Tgm => watts.tgm,
        Strategy::Bc => watts.bc,
        Strategy::Bg => watts.bg,
        Strategy::Bgc => watts.bgc,
    }
}

/// A table of the powers that `of` returns.
pub fn strategy_watts(of: impl Fn(Strategy) -> Option<f64>) -> StrategyWatts {
    StrategyWatts {
        tc: of(Strategy::Tc),
        tg: of(Strategy::Tg),
        tgm: of(Strategy::Tgm),
        bc: of(Strategy::Bc),
        bg: of(Strategy::Bg),
        bgc: of(Strategy::Bgc),
    }
}
