//! The channels that are added up. The checks of this file apply to every selection, so that nothing is counted twice.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Channel, Component, Domain, Family, Pace, Pattern, Reading, Scope, Source, Unusable, Watts, families};

/// One rail of a board profile, its table `[[power.rails]]`: one sensor and what it measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rail {
    /// The kind of sensor.
    pub family: Family,
    /// Which sensor of its kind, by an id that does not change from boot to boot: the I2C device `0-0040`, `1-0040:2` for its second
    /// channel, the powercap zone `intel-rapl:0`.
    pub id: Option<Pattern>,
    /// Which sensor, by the label that the kernel gives: `VDD_IN`, `package-0`. If `id` is given too, both must match.
    pub label: Option<Pattern>,
    /// What the rail feeds.
    pub domain: Domain,
    /// Whether the rail is part of the sum that `scope` names. A rail that another counted rail contains is not part of it.
    pub counted: bool,
    /// 1, or -1 if the sensor reports consumption as a negative number.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub sign: i8,
    /// Factor from the sensor's value, in the unit of its family, to the real value.
    #[serde(default = "unscaled", skip_serializing_if = "is_unscaled")]
    pub scale: f64,
}

impl Rail {
    /// Factor of every reading, which corrects its sign and unit.
    pub fn factor(&self) -> f64 {
        f64::from(self.sign) * self.scale
    }

    fn matches(&self, channel: &Channel) -> bool {
        self.family == channel.family
            && self.id.as_ref().is_none_or(|pattern| pattern.matches(&channel.id))
            && self.label.as_ref().is_none_or(|pattern| channel.label.as_ref().is_some_and(|label| pattern.matches(label)))
    }

    fn name(&self) -> String {
        let which = self.id.as_ref().or(self.label.as_ref()).map_or("*", Pattern::as_str);
        format!("{}:{which}", self.family)
    }
}

fn one() -> i8 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_one(sign: &i8) -> bool {
    *sign == 1
}

fn unscaled() -> f64 {
    1.0
}

#[expect(clippy::float_cmp, reason = "the default itself")]
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_unscaled(scale: &f64) -> bool {
    *scale == unscaled()
}

/// The part of a board profile that concerns power.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// What the sum of the counted rails covers.
    pub scope: Scope,
    /// The rails; the first that matches a sensor describes it.
    pub rails: Vec<Rail>,
}

impl Profile {
    fn rail(&self, channel: &Channel) -> Option<&Rail> {
        self.rails.iter().find(|rail| rail.matches(channel))
    }

    fn counts(&self, channel: &Channel) -> bool {
        self.rail(channel).is_some_and(|rail| rail.counted)
    }
}

/// A channel that is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Pick {
    /// The channel.
    pub channel: Channel,
    /// What it feeds, according to the board profile or else to the sensor.
    pub domain: Domain,
    /// Whether it is part of the sum. Other channels are reported, but not added.
    pub counted: bool,
    /// Factor of every reading.
    pub factor: f64,
    /// Whether the sum still covers its scope without this channel.
    pub dispensable: bool,
}

impl Pick {
    /// A pick of `channel` as the sensor itself describes it.
    fn of(channel: &Channel, counted: bool, dispensable: bool) -> Self {
        Self { channel: channel.clone(), domain: channel.domain, counted, factor: 1.0, dispensable }
    }
}

/// A sensor that was left out, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Skipped {
    /// The sensor: `powercap:intel-rapl:1`.
    pub sensor: String,
    /// Why it was left out.
    pub reason: String,
    /// What the user can do about it.
    pub cure: Option<String>,
}

impl Skipped {
    /// `channel`, left out because of `problem`.
    pub fn new(channel: &Channel, problem: &Unusable) -> Self {
        Self { sensor: channel.described(), reason: problem.to_string(), cure: problem.cure() }
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.sensor, self.reason)
    }
}

/// Why no selection can be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// No sensor was found, or none can be selected automatically.
    #[error("{reason}")]
    NoSensor {
        /// Why nothing can be measured.
        reason: String,
        /// What the user can do about it.
        cure: Option<String>,
    },
    /// Sensors can be used, but nothing says which of them to add up.
    #[error("{} found, but no board profile says which of them to add up", .found.join(", "))]
    Unnamed {
        /// Names of the usable sensors.
        found: Vec<String>,
    },
    /// No sensor has this name.
    #[error("there is no sensor {name:?}")]
    Unknown {
        /// The name.
        name: String,
        /// Names of all sensors found.
        known: Vec<String>,
    },
    /// A sensor that was named, or that the board profile counts, can't be used.
    #[error("{0}")]
    Unusable(Skipped),
    /// One of several packages has no usable counter, so the sum would only cover the others.
    #[error("{missing}; the sum would omit this package")]
    PackageMissing {
        /// The counter that can't be used.
        missing: Skipped,
        /// The counters of the other packages.
        others: Vec<String>,
    },
    /// Two sensors measure the same thing.
    #[error("{one} and {other} measure the same power ({part}): their sum would count it twice")]
    Overlap {
        /// One sensor.
        one: String,
        /// The other sensor.
        other: String,
        /// The part that both measure.
        part: String,
    },
}

impl SelectError {
    /// What the user can do about it.
    pub fn cure(&self) -> Option<String> {
        match self {
            Self::NoSensor { cure, .. } => cure.clone(),
            Self::Unnamed { .. } => Some("name those to add up, or use a board profile that does".to_owned()),
            Self::Unknown { known, .. } if known.is_empty() => {
                Some("no sensor was found on this machine; name a meter with its port: smartpower2:/dev/ttyUSB0".to_owned())
            }
            Self::Unknown { known, .. } => Some(format!("found: {}", known.join(", "))),
            Self::Unusable(skipped) => skipped.cure.clone(),
            Self::PackageMissing { missing, others } => {
                let partial = || format!("name the others to measure only their packages: {}", others.join(", "));
                Some(missing.cure.clone().unwrap_or_else(partial))
            }
            Self::Overlap { .. } => Some("name one of them".to_owned()),
        }
    }
}

/// Whether a channel is wanted.
type Wanted<'f> = &'f dyn Fn(&Channel) -> bool;

/// The pick of every channel of a sensor (`None` if the channel is not measured).
type Picks = Vec<Option<Pick>>;

/// Sensors whose counted channels add up to a scope, with nothing counted twice.
#[derive(Debug)]
pub struct Selection {
    pub(crate) sources: Vec<Source>,
    /// The picks of every source.
    pub(crate) picks: Vec<Picks>,
    pub(crate) scope: String,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) missing: Vec<Domain>,
}

impl Selection {
    /// The selection if the user names no sensor: the rails of `profile` if this machine has one that it counts; else a sensor of the
    /// board's input; else the processor's packages with their memory; else an APU of AMD. A battery is slow, so it is taken only if a
    /// profile counts it.
    ///
    /// # Errors
    /// [`SelectError::NoSensor`], if possible with the problem of an unusable sensor that the user can cure; [`SelectError::Unnamed`];
    /// [`SelectError::PackageMissing`]; and [`SelectError::Unusable`] or [`SelectError::Overlap`] of the profile's rails.
    pub fn automatic(mut sources: Vec<Source>, profile: Option<&Profile>) -> Result<Self, SelectError> {
        judge(&mut sources, profile);
        if let Some(profile) = profile {
            if sources.iter().flat_map(|source| &source.channels).any(|channel| profile.counts(channel)) {
                return Self::profiled(sources, profile);
            }
        }
        let usable =
            |wanted: Wanted<'_>| sources.iter().filter(|source| source.sensor.is_ok()).flat_map(|source| &source.channels).any(wanted);
        let powercap = |channel: &Channel| is_rapl(channel) && channel.family == Family::Powercap;
        let perf = |channel: &Channel| is_rapl(channel) && channel.family == Family::Perf;
        let counted: Wanted<'_> = if usable(&is_board_input) {
            &is_board_input
        } else {
            match (every_package(&sources, Family::Powercap), every_package(&sources, Family::Perf)) {
                (Ok(true), _) => &powercap,
                // Perf may have a package that powercap lacks.
                (_, Ok(true)) => &perf,
                (Err(error), _) | (_, Err(error)) => return Err(error),
                (Ok(false), Ok(false)) if usable(&is_apu) => &is_apu,
                (Ok(false), Ok(false)) => return Err(nothing(&sources)),
            }
        };
        let memory = |channel: &Channel| channel.domain == Domain::Memory;
        let picks = picks_of(&sources, |channel| counted(channel).then(|| Pick::of(channel, true, memory(channel))));
        // Of two GPUs, or two inputs of one board, only the first is taken.
        let picks = without_overlaps(picks);
        Self::checked(sources, picks, None, profile)
    }

    /// The sensors in `names`. A name is `FAMILY`, or `FAMILY:` with an id, a label, or the place of a meter, which is then opened.
    ///
    /// # Errors
    /// [`SelectError`] for a name that no sensor has, a sensor that can't be used, and two sensors that measure the same.
    ///
    /// ```
    /// use socbfs_power::{Meter, Selection, SystemFiles, discover};
    ///
    /// # let machine = tempfile::tempdir()?;
    /// # let battery = machine.path().join("sys/class/power_supply/BAT0");
    /// # std::fs::create_dir_all(&battery)?;
    /// # for (file, text) in [("type", "Battery"), ("status", "Discharging"), ("power_now", "5000000"), ("voltage_now", "11000000")] {
    /// #     std::fs::write(battery.join(file), text)?;
    /// # }
    /// # let tree = SystemFiles::new(machine.path());
    /// // A battery that always reads 5 W. `SystemFiles::new("/")` is the running machine.
    /// let meter = Meter::start(Selection::named(discover(&tree), &["power-supply:BAT0".to_owned()], None)?)?;
    /// let window = meter.begin();
    /// std::thread::sleep(std::time::Duration::from_millis(300));
    /// let energy = meter.end(window);
    /// assert!((energy.joules.unwrap().0 / energy.seconds - 5.0).abs() < 0.01);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn named(mut sources: Vec<Source>, names: &[String], profile: Option<&Profile>) -> Result<Self, SelectError> {
        judge(&mut sources, profile);
        for name in names {
            if let Some(meter) = open_named(name) {
                sources.push(meter);
            }
        }
        let mut picks = picks_of(&sources, |_| None);
        for name in names {
            if let Ok(family @ (Family::Powercap | Family::Perf)) = name.parse() {
                every_package(&sources, family)?;
            }
            let hits = find(&sources, name);
            if hits.is_empty() {
                let known = sources.iter().flat_map(|source| &source.channels).map(Channel::name).collect();
                return Err(SelectError::Unknown { name: name.clone(), known });
            }
            let channels = || hits.iter().map(|&(source, place)| &sources[source].channels[place]);
            if hits.len() > 1 && channels().any(|channel| may_contain_others(channel.family)) {
                return Err(SelectError::Unnamed { found: channels().map(Channel::name).collect() });
            }
            for (source, place) in hits {
                let channel = &sources[source].channels[place];
                if let Err(problem) = &sources[source].sensor {
                    return Err(SelectError::Unusable(Skipped::new(channel, problem)));
                }
                picks[source][place] = Some(Pick::of(channel, true, false));
            }
        }
        Self::checked(sources, picks, None, profile)
    }

    /// Every usable channel, none of them counted, with the domains and factors of `profile` if it has the rail. For display.
    pub fn everything(mut sources: Vec<Source>, profile: Option<&Profile>) -> Self {
        judge(&mut sources, profile);
        let picks = described(picks_of(&sources, |channel| Some(Pick::of(channel, false, true))), profile);
        let skipped = skipped(&sources);
        Self { sources, picks, scope: String::new(), skipped, missing: Vec::new() }
    }

    fn profiled(sources: Vec<Source>, profile: &Profile) -> Result<Self, SelectError> {
        let mut absent = Vec::new();
        for rail in profile.rails.iter().filter(|rail| rail.counted) {
            let channels = sources.iter().flat_map(|source| source.channels.iter().map(move |channel| (source, channel)));
            let matching: Vec<(&Source, &Channel)> = channels.filter(|(_, channel)| rail.matches(channel)).collect();
            if matching.is_empty() {
                // A profile may serve several boards, or several kernels of one board, so an absent rail is reported and is not an error.
                absent.push(rail);
            }
            // A rail that is present but dead is an error, since the sum without it would be a different one. A mirror of a sensor that is
            // counted is not missing in the sum: zones of intel-rapl-mmio have the labels of those of intel-rapl.
            let counted: Vec<String> =
                matching.iter().filter(|(source, _)| source.sensor.is_ok()).map(|(_, channel)| channel.name()).collect();
            let dead = matching.iter().find_map(|&(source, channel)| match source.sensor.as_ref().err()? {
                Unusable::Mirror { of } if counted.contains(of) => None,
                // An earlier rail says that it is not part of the sum.
                _ if !profile.counts(channel) => None,
                problem => Some((channel, problem)),
            });
            if let Some((channel, problem)) = dead {
                return Err(SelectError::Unusable(Skipped::new(channel, problem)));
            }
        }
        let picks = picks_of(&sources, |channel| {
            let rail = profile.rail(channel)?;
            Some(Pick { domain: rail.domain, factor: rail.factor(), ..Pick::of(channel, rail.counted, !rail.counted) })
        });
        let mut selection = Self::checked(sources, picks, Some(profile.scope), Some(profile))?;
        let counted: Vec<Domain> = selection.picks().filter(|pick| pick.counted).map(|pick| pick.domain).collect();
        for rail in absent {
            let reason = "in the board profile but not on this machine".to_owned();
            selection.skipped.push(Skipped { sensor: rail.name(), reason, cure: None });
            // The input of a board includes everything else.
            let covered = counted.iter().any(|&domain| domain == rail.domain || domain == Domain::Board);
            if !covered && !selection.missing.contains(&rail.domain) {
                selection.missing.push(rail.domain);
            }
        }
        Ok(selection)
    }

    /// Makes the selection if no two counted channels overlap. Every selection with counted channels is made here.
    fn checked(sources: Vec<Source>, picks: Vec<Picks>, scope: Option<Scope>, profile: Option<&Profile>) -> Result<Self, SelectError> {
        let counted: Vec<&Pick> = picks.iter().flatten().flatten().filter(|pick| pick.counted).collect();
        if counted.is_empty() {
            return Err(nothing(&sources));
        }
        for (index, one) in counted.iter().enumerate() {
            if let Some(other) = counted[index + 1..].iter().find(|other| one.channel.part.overlaps(&other.channel.part)) {
                let [one, other] = [one, other].map(|pick| &pick.channel);
                let part = inner(&one.part, &other.part).to_string();
                return Err(SelectError::Overlap { one: one.name(), other: other.name(), part });
            }
        }
        let scope = match scope {
            Some(scope) => scope.to_string(),
            None => {
                let mut scopes: Vec<Scope> = counted.iter().map(|pick| scope_beside(&pick.channel, &sources, &counted)).collect();
                scopes.sort();
                scopes.dedup();
                scopes.iter().map(ToString::to_string).collect::<Vec<_>>().join("+")
            }
        };
        let skipped = skipped(&sources);
        let picks = described(with_parts(&sources, picks), profile);
        Ok(Self { sources, picks, scope, skipped, missing: Vec::new() })
    }

    /// What the counted channels cover together: one or several names of [`Scope`], joined with "+".
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// The channels that are measured.
    pub fn picks(&self) -> impl Iterator<Item = &Pick> {
        self.picks.iter().flatten().flatten()
    }

    /// Sensors that were found and can't be used, and absent rails of the board profile.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// The parts of the machine that the board profile counts and that no counted channel measures: the sum is without them.
    pub fn missing(&self) -> &[Domain] {
        &self.missing
    }
}

/// Makes a sensor of the whole machine, or of its processor, unusable if it reads no power: it is connected to nothing, or the wrong way
/// round. A meter on a line, or a file of one, is left as it is, since its first lines would be lost.
fn judge(sources: &mut [Source], profile: Option<&Profile>) {
    for source in sources {
        let ([channel], Ok(sensor)) = (&source.channels[..], &mut source.sensor) else { continue };
        let rail = profile.and_then(|profile| profile.rail(channel));
        let (domain, factor) = rail.map_or((channel.domain, 1.0), |rail| (rail.domain, rail.factor()));
        let is_meter = matches!(sensor.pace(), Pace::Waits(_)) || channel.scope == Scope::Wall;
        if is_meter || !matches!(domain, Domain::Board | Domain::Package) {
            continue;
        }
        let mut problem = None;
        sensor.sample(&mut |_: usize, _: u64, reading: Reading| {
            if let Reading::Power(Watts(watts)) = reading {
                problem = Unusable::of_power(Watts(watts * factor));
            }
        });
        if let Some(problem) = problem {
            source.sensor = Err(problem);
        }
    }
}

/// What `channel` covers beside what is there: one of several ACPI meters or batteries, of which another one is not counted, does not
/// measure the whole machine. (A battery that takes no part in the load does not matter.)
fn scope_beside(channel: &Channel, sources: &[Source], counted: &[&Pick]) -> Scope {
    let is_idle = |source: &Source| matches!(source.sensor, Err(Unusable::NotDischarging { .. } | Unusable::NoPower { .. }));
    let is_left_out = |other: &Channel| other.family == channel.family && !counted.iter().any(|pick| pick.channel == *other);
    let mut others = sources.iter().filter(|source| !is_idle(source)).flat_map(|source| &source.channels);
    let is_one_of_several = matches!(channel.family, Family::AcpiPowerMeter | Family::PowerSupply) && others.any(is_left_out);
    if is_one_of_several { Scope::SocRails } else { channel.scope }
}

/// Whether channels of `family` may contain one another, and nothing says which: several of them are added only if each is named.
fn may_contain_others(family: Family) -> bool {
    matches!(family, Family::Hwmon | Family::AcpiPowerMeter)
}

/// Whether a channel that nobody names is selected as the input of the board.
fn is_board_input(channel: &Channel) -> bool {
    matches!(channel.family, Family::Ina2xx | Family::Ina3221 | Family::JetsonIio) && channel.scope == Scope::BoardInput
}

/// Whether a channel that nobody names is selected as a processor's package, or as its memory.
fn is_rapl(channel: &Channel) -> bool {
    is_counter_of_rapl(channel) && matches!(channel.domain, Domain::Package | Domain::Memory)
}

fn is_counter_of_rapl(channel: &Channel) -> bool {
    matches!(channel.family, Family::Powercap | Family::Perf)
}

/// Whether a channel that nobody names is selected as an APU. (The power of a card is not that of a processor.)
fn is_apu(channel: &Channel) -> bool {
    channel.family == Family::Amdgpu && channel.scope == Scope::CpuPackage
}

fn skipped(sources: &[Source]) -> Vec<Skipped> {
    let unusable = sources.iter().filter_map(|source| Some((source, source.sensor.as_ref().err()?)));
    unusable.flat_map(|(source, problem)| source.channels.iter().map(move |channel| Skipped::new(channel, problem))).collect()
}

/// The smaller of two parts that overlap, which would be counted twice.
fn inner<'p>(one: &'p Component, other: &'p Component) -> &'p Component {
    if one.to_string().len() >= other.to_string().len() { one } else { other }
}

/// The picks that `pick` makes of the channels of usable sources.
fn picks_of(sources: &[Source], pick: impl Fn(&Channel) -> Option<Pick>) -> Vec<Picks> {
    let of_source = |source: &Source| {
        let usable = source.sensor.is_ok();
        source.channels.iter().map(|channel| if usable { pick(channel) } else { None }).collect()
    };
    sources.iter().map(of_source).collect()
}

/// Whether `family` has usable counters for the packages of the processor (`false` if it has none at all).
///
/// # Errors
/// [`SelectError::PackageMissing`] if it has counters for only some of the packages that powercap and perf list.
fn every_package(sources: &[Source], family: Family) -> Result<bool, SelectError> {
    let all = sources.iter().flat_map(|source| source.channels.iter().map(move |channel| (source, channel)));
    let packages = all.filter(|(_, channel)| is_counter_of_rapl(channel) && channel.domain == Domain::Package);
    let (usable, rest): (Vec<_>, Vec<_>) = packages.partition(|(source, channel)| channel.family == family && source.sensor.is_ok());
    if usable.is_empty() {
        return Ok(false);
    }
    let is_missing = |channel: &Channel| !usable.iter().any(|(_, counter)| counter.part.overlaps(&channel.part));
    let missing = rest.iter().filter(|(_, channel)| is_missing(channel)).map(|(source, channel)| match &source.sensor {
        Err(problem) => Skipped::new(channel, problem),
        Ok(_) => Skipped { sensor: channel.name(), reason: format!("{family} has no counter of this package"), cure: None },
    });
    // A problem that the user can cure is reported first.
    match missing.min_by_key(|skipped| skipped.cure.is_none()) {
        Some(missing) => {
            let others = usable.iter().map(|(_, channel)| channel.name()).collect();
            Err(SelectError::PackageMissing { missing, others })
        }
        None => Ok(true),
    }
}

/// Removes every pick that overlaps an earlier one.
fn without_overlaps(mut picks: Vec<Picks>) -> Vec<Picks> {
    let mut parts: Vec<Component> = Vec::new();
    for pick in picks.iter_mut().flatten() {
        match pick {
            Some(found) if parts.iter().any(|part| part.overlaps(&found.channel.part)) => *pick = None,
            Some(found) => parts.push(found.channel.part.clone()),
            None => {}
        }
    }
    picks
}

/// Adds the other usable channels of the counted families as uncounted picks, so that the sum can be shown by domain.
fn with_parts(sources: &[Source], mut picks: Vec<Picks>) -> Vec<Picks> {
    let counted = picks.iter().flatten().flatten().map(|pick| pick.channel.family);
    let families: Vec<Family> = counted.filter(|&family| !may_contain_others(family)).collect();
    let parts = picks_of(sources, |channel| families.contains(&channel.family).then(|| Pick::of(channel, false, true)));
    for (pick, part) in picks.iter_mut().flatten().zip(parts.into_iter().flatten()) {
        *pick = pick.take().or(part);
    }
    picks
}

/// Gives every pick the domain and the factor of its rail in `profile`.
fn described(mut picks: Vec<Picks>, profile: Option<&Profile>) -> Vec<Picks> {
    for pick in picks.iter_mut().flatten().flatten() {
        if let Some(rail) = profile.and_then(|profile| profile.rail(&pick.channel)) {
            pick.domain = rail.domain;
            pick.factor = rail.factor();
        }
    }
    picks
}

/// Opens the meter that `name` names by its place: `smartpower2:/dev/ttyUSB0` (`None` if it is not the name of a meter).
pub fn open_named(name: &str) -> Option<Source> {
    let (family, place) = name.split_once(':')?;
    let family: Family = family.parse().ok()?;
    // A channel's name begins with the meter's place.
    let place = match family {
        Family::Smartpower3 => {
            place.strip_suffix("/input").or_else(|| place.strip_suffix(":1")).or_else(|| place.strip_suffix(":2")).unwrap_or(place)
        }
        _ => place,
    };
    families::open(family, place)
}

/// The channels that `name` means, as indices of source and channel. A family alone means its outermost channels.
fn find(sources: &[Source], name: &str) -> Vec<(usize, usize)> {
    let (family, rest) = name.split_once(':').map_or((name, None), |(family, rest)| (family, Some(rest)));
    let Ok(family) = family.parse::<Family>() else { return Vec::new() };
    let all =
        sources.iter().enumerate().flat_map(|(index, source)| source.channels.iter().enumerate().map(move |(channel, _)| (index, channel)));
    let of_family: Vec<(usize, usize)> = all.filter(|&(source, channel)| sources[source].channels[channel].family == family).collect();
    let channel = |&(source, channel): &(usize, usize)| &sources[source].channels[channel];
    match rest {
        Some(rest) => {
            let hits: Vec<(usize, usize)> = of_family.into_iter().filter(|hit| channel(hit).answers_to(rest)).collect();
            // A mirror may have the same label, so usable channels come first.
            let usable: Vec<(usize, usize)> = hits.iter().copied().filter(|hit| sources[hit.0].sensor.is_ok()).collect();
            if usable.is_empty() { hits } else { usable }
        }
        None => {
            let usable: Vec<(usize, usize)> = of_family.iter().copied().filter(|hit| sources[hit.0].sensor.is_ok()).collect();
            // psys is only taken by its own name: on some processors it exists and stays empty.
            let is_psys = |hit: &(usize, usize)| is_counter_of_rapl(channel(hit)) && channel(hit).domain == Domain::Board;
            let candidates: Vec<(usize, usize)> = usable.iter().copied().filter(|hit| !is_psys(hit)).collect();
            let outermost = |hit: &(usize, usize)| {
                let part = &channel(hit).part;
                !candidates.iter().any(|other| {
                    other != hit
                        && channel(other).part.overlaps(part)
                        && inner(part, &channel(other).part) == part
                        && (channel(other).part != *part || other < hit)
                })
            };
            let is_meant = |hit: &(usize, usize)| may_contain_others(family) || outermost(hit);
            let found: Vec<(usize, usize)> = candidates.iter().copied().filter(is_meant).collect();
            if found.is_empty() { of_family.into_iter().take(1).collect() } else { found }
        }
    }
}

/// Why nothing in `sources` is selected automatically: a sensor that would be, if the user cured it; else the usable ones; else why the
/// others are not.
fn nothing(sources: &[Source]) -> SelectError {
    let problem = |wanted: &dyn Fn(&Channel, &Unusable) -> bool| {
        let mut unusable = sources.iter().filter_map(|source| Some((source.channels.first()?, source.sensor.as_ref().err()?)));
        let (channel, problem) = unusable.find(|(channel, problem)| wanted(channel, problem))?;
        Some(SelectError::NoSensor { reason: Skipped::new(channel, problem).to_string(), cure: problem.cure() })
    };
    let is_automatic = |channel: &Channel| is_board_input(channel) || is_rapl(channel) || is_apu(channel);
    let usable = || {
        let channels = sources.iter().filter(|source| source.sensor.is_ok()).flat_map(|source| &source.channels);
        let found: Vec<String> = channels.map(Channel::name).collect();
        (!found.is_empty()).then_some(SelectError::Unnamed { found })
    };
    problem(&|channel, problem| problem.cure().is_some() && is_automatic(channel))
        .or_else(usable)
        .or_else(|| problem(&|_, problem| problem.cure().is_some()))
        .or_else(|| problem(&|_, _| true))
        .unwrap_or_else(|| SelectError::NoSensor { reason: "no power sensor was found on this machine".to_owned(), cure: None })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::channel::{Sensor, Signal, Sink};

    #[derive(Debug)]
    struct Mute;

    impl Sensor for Mute {
        fn pace(&self) -> Pace {
            Pace::Every(Duration::from_secs(1))
        }

        fn sample(&mut self, _: &mut dyn Sink) {}
    }

    fn source(family: Family, id: &str, label: &str, domain: Domain, scope: Scope, part: Component) -> Source {
        let signal = match family {
            Family::Powercap | Family::Perf => Signal::Counter { joules_per_count: 1e-6, range: 1 << 40 },
            _ => Signal::Power,
        };
        let label = (!label.is_empty()).then(|| label.to_owned());
        let channel = Channel {
            family,
            id: id.to_owned(),
            label,
            domain,
            scope,
            part,
            signal,
            refresh: Duration::from_millis(1),
            place: String::new(),
        };
        Source::new(vec![channel], Ok(Box::new(Mute)))
    }

    fn rapl() -> Vec<Source> {
        let package = |index: u32| Component::package(index);
        let zone = |id: &str, label: &str, domain, scope, part| source(Family::Powercap, id, label, domain, scope, part);
        vec![
            zone("intel-rapl:0", "package-0", Domain::Package, Scope::CpuPackage, package(0)),
            zone("intel-rapl:0:0", "core", Domain::Cpu, Scope::CpuPackage, package(0).inner("core")),
            zone("intel-rapl:0:1", "uncore", Domain::Gpu, Scope::CpuPackage, package(0).inner("uncore")),
            zone("intel-rapl:0:2", "dram", Domain::Memory, Scope::CpuPackage, Component::memory(0)),
            zone("intel-rapl:1", "psys", Domain::Board, Scope::BoardInput, Component::board()),
            zone("intel-rapl:2", "package-1", Domain::Package, Scope::CpuPackage, package(1)),
            source(Family::Perf, "energy-pkg/0", "energy-pkg", Domain::Package, Scope::CpuPackage, package(0)),
            source(Family::Perf, "energy-pkg/1", "energy-pkg", Domain::Package, Scope::CpuPackage, package(1)),
            source(Family::Amdgpu, "0000:04:00.0", "", Domain::Package, Scope::CpuPackage, package(0)),
        ]
    }

    fn rails() -> Vec<Source> {
        let rail = |id: &str, label: &str, domain| source(Family::Ina2xx, id, label, domain, Scope::SocRails, Component::rail(id));
        vec![
            rail("0-0040", "VDD_ARM", Domain::CpuBig),
            rail("0-0041", "", Domain::Soc),
            rail("0-0044", "", Domain::Soc),
            rail("0-0045", "VDD_KFC", Domain::CpuLittle),
        ]
    }

    fn counted(selection: &Selection) -> Vec<String> {
        selection.picks().filter(|pick| pick.counted).map(|pick| pick.channel.name()).collect()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn named(sources: Vec<Source>, wanted: &[&str]) -> Result<Selection, SelectError> {
        Selection::named(sources, &names(wanted), None)
    }

    #[test]
    fn packages_and_their_memory_are_counted_and_their_parts_shown() {
        let selection = Selection::automatic(rapl(), None).unwrap();
        assert_eq!(counted(&selection), ["powercap:intel-rapl:0", "powercap:intel-rapl:0:2", "powercap:intel-rapl:2"]);
        assert_eq!(selection.scope(), "cpu-package");
        let shown: Vec<&Pick> = selection.picks().filter(|pick| !pick.counted).collect();
        assert_eq!(shown.len(), 3, "core, uncore, psys: {shown:?}");
        assert!(selection.picks().any(|pick| pick.channel.label.as_deref() == Some("dram") && pick.dispensable));
    }

    #[test]
    fn perf_replaces_denied_powercap_and_amdgpu_is_not_added() {
        let mut sources = rapl();
        for source in &mut sources[..6] {
            source.sensor = Err(Unusable::Permission { place: "energy_uj".into(), cure: "chmod".into() });
        }
        let selection = Selection::automatic(sources, None).unwrap();
        assert_eq!(counted(&selection), ["perf:energy-pkg/0", "perf:energy-pkg/1"]);
        assert_eq!(selection.skipped().len(), 6);
        assert_eq!(selection.skipped()[0].cure.as_deref(), Some("chmod"));
    }

    #[test]
    fn an_apu_replaces_its_denied_package_and_a_card_does_not() {
        let denied = || {
            let mut sources = rapl();
            sources.retain(|source| source.channels[0].id != "intel-rapl:2" && source.channels[0].id != "energy-pkg/1");
            for source in sources.iter_mut().filter(|source| source.channels[0].family != Family::Amdgpu) {
                source.sensor = Err(Unusable::Permission { place: "energy_uj".into(), cure: "chmod".into() });
            }
            sources
        };
        assert_eq!(counted(&Selection::automatic(denied(), None).unwrap()), ["amdgpu:0000:04:00.0"]);
        let mut with_card = denied();
        let channel = &mut with_card.last_mut().unwrap().channels[0];
        (channel.scope, channel.domain, channel.part) = (Scope::Card, Domain::Gpu, Component::card("0000:04:00.0"));
        let error = Selection::automatic(with_card, None).unwrap_err();
        assert_eq!(error.cure().as_deref(), Some("chmod"), "{error}");
    }

    #[test]
    fn a_package_that_cannot_be_read_is_never_left_out_of_the_sum() {
        let denied = || Err(Unusable::Permission { place: "energy_uj".into(), cure: "chmod".into() });
        let silent = || Err(Unusable::Silent { milliseconds: 1, last: None });
        type Lost<'l> = (&'l str, fn() -> Result<Box<dyn Sensor>, Unusable>);
        let without = |lost: &[Lost<'_>]| {
            let mut sources = rapl();
            for source in &mut sources {
                if let Some((_, reason)) = lost.iter().find(|(id, _)| *id == source.channels[0].id) {
                    source.sensor = reason();
                }
            }
            sources
        };
        // Perf has both packages.
        let selection = Selection::automatic(without(&[("intel-rapl:2", denied)]), None).unwrap();
        assert_eq!(counted(&selection), ["perf:energy-pkg/0", "perf:energy-pkg/1"]);
        // Neither family has both packages, and amdgpu has only one of them.
        let both = || without(&[("intel-rapl:2", denied), ("energy-pkg/1", silent)]);
        let error = Selection::automatic(both(), None).unwrap_err();
        assert!(error.to_string().contains("intel-rapl:2 (package-1): energy_uj may not be read"), "{error}");
        assert!(error.to_string().contains("omit this package"), "{error}");
        assert_eq!(error.cure().as_deref(), Some("chmod"));
        // If the user can't cure it, the cure is to name the counters that remain.
        let error = Selection::automatic(without(&[("intel-rapl:2", silent), ("energy-pkg/1", silent)]), None).unwrap_err();
        assert!(error.cure().unwrap().ends_with(": powercap:intel-rapl:0"), "{error:?}");
        assert_eq!(counted(&named(both(), &["powercap:intel-rapl:0"]).unwrap()), ["powercap:intel-rapl:0"]);
        // A family alone means all packages.
        for (lost, family) in [("intel-rapl:2", "powercap"), ("energy-pkg/0", "perf")] {
            let error = named(without(&[(lost, denied)]), &[family]).unwrap_err();
            assert!(matches!(&error, SelectError::PackageMissing { missing, .. } if missing.sensor.contains(lost)), "{error}");
        }
        // Powercap can't be read, and perf lacks a package that powercap lists.
        let mut short = without(&[("intel-rapl:0", denied), ("intel-rapl:2", denied)]);
        short.retain(|source| source.channels[0].id != "energy-pkg/1");
        assert!(matches!(Selection::automatic(short, None), Err(SelectError::PackageMissing { .. })));
        // The packages are added up despite a mirror of a usable counter and despite unreadable memory.
        let mut sources = without(&[("intel-rapl:0:2", denied)]);
        let mut mirror =
            source(Family::Powercap, "intel-rapl-mmio:0", "package-0", Domain::Package, Scope::CpuPackage, Component::package(0));
        mirror.sensor = Err(Unusable::Mirror { of: "powercap:intel-rapl:0".into() });
        sources.push(mirror);
        assert_eq!(counted(&Selection::automatic(sources, None).unwrap()), ["powercap:intel-rapl:0", "powercap:intel-rapl:2"]);
    }

    #[test]
    fn overlapping_sensors_are_not_added() {
        for pair in [
            ["powercap:psys", "powercap:package-0"],
            ["powercap:package-0", "powercap:core"],
            ["powercap:intel-rapl:0", "perf:energy-pkg"],
            ["powercap:package-0", "amdgpu"],
            ["powercap:psys", "powercap:dram"],
        ] {
            let error = named(rapl(), &pair).unwrap_err();
            assert!(matches!(error, SelectError::Overlap { .. }), "{pair:?}: {error}");
            assert!(error.cure().unwrap().contains("one of them"));
        }
        assert_eq!(named(rapl(), &["powercap:psys"]).unwrap().scope(), "board-input");
        assert_eq!(counted(&named(rapl(), &["powercap:package-1", "powercap:dram"]).unwrap()).len(), 2);
    }

    #[test]
    fn a_family_selects_its_outermost_channels() {
        assert_eq!(
            counted(&named(rapl(), &["powercap"]).unwrap()),
            ["powercap:intel-rapl:0", "powercap:intel-rapl:0:2", "powercap:intel-rapl:2"]
        );
        assert_eq!(counted(&named(rails(), &["ina2xx"]).unwrap()).len(), 4);
        let jetson = vec![
            source(Family::Ina3221, "1-0040:1", "VDD_IN", Domain::Board, Scope::BoardInput, Component::board()),
            source(Family::Ina3221, "1-0040:2", "VDD_CPU_GPU_CV", Domain::Soc, Scope::SocRails, Component::rail("1-0040:2")),
        ];
        assert_eq!(counted(&named(jetson, &["ina3221"]).unwrap()), ["ina3221:1-0040:1"]);
    }

    #[test]
    fn a_rail_that_contains_the_others_is_the_sum() {
        let jetson = || {
            vec![
                source(Family::Ina3221, "1-0040:1", "VDD_IN", Domain::Board, Scope::BoardInput, Component::board()),
                source(Family::Ina3221, "1-0040:2", "VDD_CPU_GPU_CV", Domain::Soc, Scope::SocRails, Component::rail("1-0040:2")),
            ]
        };
        let selection = Selection::automatic(jetson(), None).unwrap();
        assert_eq!((counted(&selection), selection.scope()), (names(&["ina3221:1-0040:1"]), "board-input"));
        assert!(matches!(named(jetson(), &["ina3221:VDD_IN", "ina3221:1-0040:2"]), Err(SelectError::Overlap { .. })));
        // The chip's name means both channels, and they overlap.
        assert!(matches!(named(jetson(), &["ina3221:1-0040"]), Err(SelectError::Overlap { .. })));
    }

    fn rail(id: Option<&str>, label: Option<&str>, domain: Domain, counted: bool) -> Rail {
        let pattern = |text: &str| text.parse().unwrap();
        Rail { family: Family::Ina2xx, id: id.map(pattern), label: label.map(pattern), domain, counted, sign: 1, scale: 2.0 }
    }

    #[test]
    fn a_profile_defines_which_rails_are_summed() {
        let profile = Profile {
            scope: Scope::SocRails,
            rails: vec![
                rail(Some("*-0040"), None, Domain::CpuBig, true),
                rail(None, Some("vdd_k*"), Domain::CpuLittle, true),
                rail(Some("0-0041"), None, Domain::Memory, false),
            ],
        };
        let selection = Selection::automatic(rails(), Some(&profile)).unwrap();
        assert_eq!(counted(&selection), ["ina2xx:0-0040", "ina2xx:0-0045"]);
        let memory = selection.picks().find(|pick| pick.channel.id == "0-0041").unwrap();
        assert_eq!((memory.domain, memory.counted, memory.factor.to_bits()), (Domain::Memory, false, 2.0_f64.to_bits()));
        // It also describes rails that are named, and those that are shown beside them.
        let selection = Selection::named(rails(), &names(&["ina2xx:0-0040"]), Some(&profile)).unwrap();
        let memory = selection.picks().find(|pick| pick.channel.id == "0-0041").unwrap();
        assert_eq!((memory.domain, memory.counted, memory.factor.to_bits()), (Domain::Memory, false, 2.0_f64.to_bits()));
        // Without the profile it is unknown what adds up.
        let error = Selection::automatic(rails(), None).unwrap_err();
        assert!(error.to_string().contains("ina2xx:0-0040") && error.cure().is_some(), "{error}");
        // An absent rail is reported; a dead one is an error.
        let mut short = rails();
        short.remove(3);
        let selection = Selection::automatic(short, Some(&profile)).unwrap();
        assert_eq!(counted(&selection), ["ina2xx:0-0040"]);
        assert_eq!(selection.skipped()[0].sensor, "ina2xx:vdd_k*");
        assert_eq!(selection.missing(), [Domain::CpuLittle]);
        // A rail that another kernel of the same board calls differently is not missing, nor what the input of the board includes.
        for domain in [Domain::CpuLittle, Domain::Board] {
            let mut other = profile.clone();
            other.rails[2] = rail(Some("0-0041"), None, domain, true);
            let mut short = rails();
            short.remove(3);
            let selection = Selection::automatic(short, Some(&other)).unwrap();
            assert_eq!((selection.skipped().len(), selection.missing()), (1, &[][..]), "{domain}");
        }
        let mut dead = rails();
        dead[0].sensor = Err(Unusable::Still { milliseconds: 5 });
        assert!(matches!(Selection::automatic(dead, Some(&profile)), Err(SelectError::Unusable(_))));
        // A profile of another board does not prevent the use of this machine's sensors.
        assert_eq!(counted(&Selection::automatic(rapl(), Some(&profile)).unwrap()).len(), 3);
    }

    #[test]
    fn an_input_without_power_is_not_taken() {
        use crate::families::{discover, tests::fixture::Fixture};
        let fixture = Fixture::new();
        let apu = ["sys/class/hwmon/hwmon1/name", "sys/class/hwmon/hwmon1/in1_label", "sys/class/hwmon/hwmon1/power1_average"];
        for (file, text) in apu.into_iter().zip(["amdgpu", "vddnb", "15000000"]) {
            fixture.file(file, text);
        }
        fixture.files("sys/class/hwmon/hwmon0", &[("name", "ina219"), ("label", "VIN")]);
        let found = || discover(&fixture.tree());
        let whole = Profile {
            scope: Scope::BoardInput,
            rails: vec![Rail { sign: -1, scale: 1.0, ..rail(None, Some("VIN"), Domain::Board, true) }],
        };
        for (micro_watts, read) in [("5000000", ""), ("0", "0.000 W"), ("-1000000", "-1.000 W")] {
            fixture.file("sys/class/hwmon/hwmon0/power1_input", micro_watts);
            let why = format!("ina2xx:hwmon0 (VIN): reads {read}, and a power must be above 0");
            let selection = Selection::automatic(found(), None).unwrap();
            assert_eq!(counted(&selection), [if read.is_empty() { "ina2xx:hwmon0" } else { "amdgpu:hwmon1" }], "{micro_watts}");
            assert_eq!(selection.skipped().iter().any(|skipped| skipped.to_string() == why), !read.is_empty());
            let by_name = named(found(), &["ina2xx"]);
            assert_eq!(by_name.err().map(|error| error.to_string()), (!read.is_empty()).then_some(why), "{micro_watts}");
            // The profile knows that the shunt is the wrong way round.
            assert_eq!(Selection::automatic(found(), Some(&whole)).is_ok(), micro_watts == "-1000000");
        }
        assert!(named(found(), &["ina2xx"]).unwrap_err().cure().unwrap().contains("sign = -1"));
        // So does the package of an APU whose firmware gives 0 W.
        fixture.file(apu[2], "0");
        assert!(Selection::automatic(found(), None).is_err());
    }

    #[test]
    fn the_first_rail_that_matches_a_sensor_describes_it() {
        let profile = Profile {
            scope: Scope::SocRails,
            rails: vec![rail(Some("0-0041"), None, Domain::Memory, false), rail(Some("0-004*"), None, Domain::Soc, true)],
        };
        // The sum does not have this sensor, so it may be dead.
        let mut dead = rails();
        dead[1].sensor = Err(Unusable::Still { milliseconds: 5 });
        let selection = Selection::automatic(dead, Some(&profile)).unwrap();
        assert_eq!(counted(&selection), ["ina2xx:0-0040", "ina2xx:0-0044", "ina2xx:0-0045"]);
        // A profile that counts none of the sensors of this machine does not prevent the use of others.
        let mut other = rapl();
        other.push(rails().remove(1));
        assert_eq!(counted(&Selection::automatic(other, Some(&profile)).unwrap()).len(), 3);
    }

    #[test]
    fn a_mirror_of_a_profiled_sensor_is_not_a_dead_rail() {
        let with_mirror = || {
            let mut sources = rapl();
            let (domain, scope) = (Domain::Package, Scope::CpuPackage);
            let mut mirror = source(Family::Powercap, "intel-rapl-mmio:0", "package-0", domain, scope, Component::package(0));
            mirror.sensor = Err(Unusable::Mirror { of: "powercap:intel-rapl:0".into() });
            sources.push(mirror);
            sources
        };
        let profile = |id: Option<&str>, label: Option<&str>| Profile {
            scope: Scope::CpuPackage,
            rails: vec![Rail { family: Family::Powercap, scale: 1.0, ..rail(id, label, Domain::Package, true) }],
        };
        let selection = Selection::automatic(with_mirror(), Some(&profile(None, Some("package-0")))).unwrap();
        assert_eq!(counted(&selection), ["powercap:intel-rapl:0"]);
        // A rail that means the mirror alone would measure nothing.
        let error = Selection::automatic(with_mirror(), Some(&profile(Some("intel-rapl-mmio:0"), None))).unwrap_err();
        assert!(error.to_string().contains("the same as powercap:intel-rapl:0"), "{error}");
    }

    #[test]
    fn usable_sensors_that_need_a_name_come_before_dead_ones() {
        let dead = || Err(Unusable::Dead { place: "in1_input".into(), reason: crate::channel::Lost::Gone });
        let mut sources = rails();
        (sources[0].sensor, sources[2].sensor) = (dead(), Err(Unusable::NotDischarging { status: "Unknown".into() }));
        let error = Selection::automatic(sources, None).unwrap_err();
        let reason = "ina2xx:0-0041, ina2xx:0-0045 found, but no board profile says which of them to add up";
        assert_eq!(error.to_string(), reason);
        assert!(matches!(&error, SelectError::Unnamed { .. }) && error.cure().unwrap().starts_with("name those"), "{error:?}");
        // A sensor that would be selected comes first if the user can cure it, and only then.
        for (problem, first) in [
            (Unusable::Permission { place: "energy_uj".into(), cure: "chmod".into() }, "powercap:intel-rapl:0"),
            (Unusable::Still { milliseconds: 1 }, "ina2xx:0-0040"),
        ] {
            let mut sources = rails();
            sources.extend(rapl().into_iter().take(1));
            sources[4].sensor = Err(problem);
            let error = Selection::automatic(sources, None).unwrap_err();
            assert!(error.to_string().starts_with(first), "{error}");
        }
        // None is usable: the one that the user can cure.
        let mut sources = rails();
        sources.iter_mut().for_each(|source| source.sensor = dead());
        sources[3].sensor = Err(Unusable::Disabled { place: "enable".into(), cure: "echo 1".into() });
        assert_eq!(Selection::automatic(sources, None).unwrap_err().cure().as_deref(), Some("echo 1"));
    }

    #[test]
    fn unknown_names_are_reported_with_the_known_ones() {
        let error = named(rails(), &["ina2xx:0-0099"]).unwrap_err();
        assert!(error.to_string().contains("0-0099") && error.cure().unwrap().contains("ina2xx:0-0041"), "{error}");
        assert!(matches!(named(Vec::new(), &["rapl"]), Err(SelectError::Unknown { .. })));
        let error = named(Vec::new(), &["external:/nowhere/w.csv"]).unwrap_err();
        assert!(matches!(&error, SelectError::Unusable(skipped) if skipped.reason.contains("/nowhere/w.csv")), "{error}");
        let error = Selection::automatic(Vec::new(), None).unwrap_err();
        assert_eq!(error.to_string(), "no power sensor was found on this machine");
    }
}
