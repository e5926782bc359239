//! The energy of one search: searches follow one another in a window that the sensors can resolve, and the window's energy is divided by
//! their number.
//!
//! ```text
//! cargo run --release --example energy -- [SECONDS]      how long the window is, 10 if not given
//! ```

use std::{
    env,
    error::Error,
    time::{Duration, Instant},
};

use socbfs::{
    BuildOptions, Layout, Search, SearchOptions,
    input::generate::Generator,
    power::{Energy, Meter, Selection, Source, Tree, discover},
};

/// Searches for as long as `window` with the sensors `sources`. Returns the number of searches and the energy of all of them.
pub fn measure(sources: Vec<Source>, window: Duration) -> Result<(u32, Energy), Box<dyn Error>> {
    let edges = Generator::graph500(14).generate(&|_| ())?;
    let layout = Layout::build(&edges, &BuildOptions::default())?;
    let mut search = Search::new(&layout, &SearchOptions::default())?;
    // Chooses sensors so that nothing is counted twice; an error says why there is none, and what would cure it.
    let meter = Meter::start(Selection::automatic(sources, None)?)?;
    let (begin, mut searches) = (Instant::now(), 0);
    let measured = meter.begin();
    while searches == 0 || begin.elapsed() < window {
        search.run_uncounted(5)?;
        searches += 1;
    }
    Ok((searches, meter.end(measured)))
}

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = env::args().nth(1).map_or(Ok(10), |seconds| seconds.parse())?;
    let (searches, energy) = measure(discover(&Tree::new("/")), Duration::from_secs(seconds))?;
    match energy.joules {
        Some(joules) => println!("{:.6} J a search ({searches} searches; {})", joules.0 / f64::from(searches), energy.scope),
        None => println!("n/a: {}", energy.problem.unwrap_or_default()),
    }
    Ok(())
}
