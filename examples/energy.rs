//! Measures the energy of one search: searches run one after another in a window that the sensors can resolve, and the energy of the window
//! is divided by their number.
//!
//! ```text
//! cargo run --release --example energy -- [SECONDS [SENSOR...]]      10 s, and the sensors that add up, if not given
//! ```

use std::{
    env,
    error::Error,
    time::{Duration, Instant},
};

use socbfs::{BuildOptions, Layout, Run, Search, SearchOptions};
use socbfs_boards::Profile;
use socbfs_io::Generator;
use socbfs_power::{Energy, Meter, Selection, SystemFiles, discover};

/// Searches for the time `window`, measured by the sensors of `selection`. Returns the number of searches and the energy of all of them.
pub fn measure(selection: Selection, window: Duration) -> Result<(u32, Energy), Box<dyn Error>> {
    let edges = Generator::graph500(14).generate(&|_| ())?;
    let layout = Layout::build(&edges, &BuildOptions::default())?;
    let mut search = Search::new(&layout, &SearchOptions::default())?;
    let meter = Meter::start(selection)?;
    let (begin, mut searches) = (Instant::now(), 0);
    let measured = meter.begin();
    while searches == 0 || begin.elapsed() < window {
        search.run(Run { uncounted: true, ..5.into() })?;
        searches += 1;
    }
    Ok((searches, meter.end(measured)))
}

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = env::args().nth(1).map_or(Ok(10), |seconds| seconds.parse())?;
    let names: Vec<String> = env::args().skip(2).collect();
    let sources = discover(&SystemFiles::new("/"));
    // The board profile says which rails add up to what, with their signs and scales.
    let profile = Profile::detected()?.power();
    // A selection counts nothing twice. Its error says why none can be made, and what the user can do about it.
    let selection = if names.is_empty() {
        Selection::automatic(sources, profile.as_ref())?
    } else {
        Selection::named(sources, &names, profile.as_ref())?
    };
    let (searches, energy) = measure(selection, Duration::from_secs(seconds))?;
    match energy.joules {
        Some(joules) => println!("{:.6} J a search ({searches} searches; {})", joules.0 / f64::from(searches), energy.scope),
        None => println!("n/a: {}", energy.problem.unwrap_or_default()),
    }
    Ok(())
}
