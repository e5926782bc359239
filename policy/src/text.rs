//! Policies as text and as TOML, by the parameters that their files define.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::SerializeMap};
use socbfs::bfs::Planner;

use super::{
    NEVER, Policy, PolicyError,
    rule::{Parameter, Range, Value},
};

/// A number of edges or vertices, or `never`.
fn amount(text: &str) -> Option<u64> {
    if text == "never" { Some(NEVER) } else { text.parse().ok() }
}

impl Parameter<'_> {
    /// Sets the value from text (`None`: the text is not valid). [`Parameter::check`] checks the range.
    fn set_text(&mut self, text: &str) -> Option<()> {
        match &mut self.value {
            Value::Number(Range::Count, value) => **value = text.parse::<u64>().ok()? as f64,
            Value::Number(Range::Permille, value) => **value = text.parse::<u16>().ok()?.into(),
            Value::Number(_, value) => **value = text.parse().ok()?,
            Value::Amount(value) => **value = Some(amount(text)?),
            Value::Share(value) => **value = Some(text.parse().ok()?),
            Value::Special(value) => value.set_text(text)?,
        }
        Some(())
    }

    /// The value as text (`None`: not given).
    fn text(&self) -> Option<String> {
        match &self.value {
            Value::Number(_, value) => Some(value.to_string()),
            Value::Amount(value) => value.map(|value| if value == NEVER { "never".to_owned() } else { value.to_string() }),
            Value::Share(value) => value.map(|value| value.to_string()),
            Value::Special(value) => value.text(),
        }
    }

    /// Sets the value from TOML; `kind` is the name of the policy.
    fn set_toml(&mut self, kind: &'static str, given: &toml::Value) -> Result<(), PolicyError> {
        let (name, number) = (self.name, given.as_integer());
        let bad = |wanted: &str| PolicyError::BadParameters { kind, wanted: format!("{name} = {wanted}").into(), given: given.to_string() };
        let count = || number.and_then(|number| u64::try_from(number).ok());
        let share = || {
            let value = number.ok_or_else(|| bad("thousandths"))?;
            u16::try_from(value).map_err(|_| PolicyError::NotAShare { name, value })
        };
        match &mut self.value {
            Value::Number(Range::Count, value) => **value = count().ok_or_else(|| bad("a number, 0 or more"))? as f64,
            Value::Number(Range::Permille, value) => **value = share()?.into(),
            Value::Number(_, value) => {
                **value = given.as_float().or(number.map(|number| number as f64)).ok_or_else(|| bad("a number"))?;
            }
            Value::Amount(value) => {
                let never = (given.as_str() == Some("never")).then_some(NEVER);
                **value = Some(count().or(never).ok_or_else(|| bad("a number, 0 or more, or \"never\""))?);
            }
            Value::Share(value) => **value = Some(share()?),
            Value::Special(value) => value.set_toml(given)?,
        }
        Ok(())
    }

    /// The value as TOML (`None`: not given).
    fn toml(&self) -> Option<toml::Value> {
        let count = |value: u64| match i64::try_from(value) {
            Ok(value) => toml::Value::Integer(value),
            Err(_) => toml::Value::String("never".to_owned()),
        };
        match &self.value {
            Value::Number(Range::Count | Range::Permille, value) => Some(count(**value as u64)),
            Value::Number(_, value) => Some(toml::Value::Float(**value)),
            Value::Amount(value) => value.map(count),
            Value::Share(value) => value.map(|value| count(value.into())),
            Value::Special(value) => value.toml(),
        }
    }

    /// Checks the range of the value.
    fn check(&self) -> Result<(), PolicyError> {
        let name = self.name;
        let not_a_share = |share: i64| Err(PolicyError::NotAShare { name, value: share });
        match self.value {
            Value::Number(Range::Positive, &mut value) if !(value.is_finite() && value > 0.0) => {
                Err(PolicyError::OutOfRange { name, value })
            }
            Value::Number(Range::Finite, &mut value) if !value.is_finite() => Err(PolicyError::NotFinite { name, value }),
            Value::Number(Range::Fraction, &mut value) if !(0.0..=1.0).contains(&value) => Err(PolicyError::NotAFraction { name, value }),
            Value::Number(Range::Permille, &mut share) if !(1.0..1000.0).contains(&share) => not_a_share(share as i64),
            Value::Share(&mut Some(share)) if !(1..1000).contains(&share) => not_a_share(share.into()),
            _ => Ok(()),
        }
    }
}

impl Policy {
    /// Checks the values of the parameters.
    ///
    /// # Errors
    /// [`PolicyError::OutOfRange`] for a threshold that is not a finite number above 0, [`PolicyError::NotAShare`] and
    /// [`PolicyError::NotAFraction`] for an invalid share, [`PolicyError::NotFinite`], [`PolicyError::CostModel`].
    pub fn validate(&self) -> Result<(), PolicyError> {
        self.clone().rule_mut().parameters().iter().try_for_each(Parameter::check)?;
        self.rule().validate()
    }

    /// Sets the parameters from `given`, the text after the colon.
    fn set_parameters(&mut self, given: &str) -> Result<(), PolicyError> {
        let known = self.rule().known();
        let mut own = self.rule_mut().parameters();
        if own.is_empty() {
            return Err(PolicyError::NoParameters { kind: known.kind, given: given.to_owned() });
        }
        if known.parameters.is_empty() {
            // Its parameter is a table of TOML.
            let wanted = format!("no parameter here: only the command line reads {}:FILE", known.kind).into();
            return Err(PolicyError::BadParameters { kind: known.kind, wanted, given: given.to_owned() });
        }
        if let [Parameter { value: Value::Special(value), .. }] = &mut own[..] {
            if let Some(set) = value.set_whole(given) {
                return set;
            }
        }
        let values: Vec<&str> = given.split(',').map(str::trim).collect();
        let set = if given.contains('=') {
            values.iter().try_for_each(|pair| {
                let (name, value) = pair.split_once('=')?;
                own.iter_mut().find(|own| own.name == name.trim())?.set_text(value.trim())
            })
        } else if values.len() == own.len() {
            own.iter_mut().zip(values).try_for_each(|(own, value)| own.set_text(value))
        } else {
            None
        };
        set.ok_or_else(|| {
            let names = own.iter().map(|own| own.name).collect::<Vec<_>>().join(", ");
            let wanted = format!("{}:{}, where the values are in order or as NAME=VALUE: {names}", known.kind, known.parameters).into();
            PolicyError::BadParameters { kind: known.kind, wanted, given: given.to_owned() }
        })
    }
}

impl std::str::FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let (kind, parameters) = text.split_once(':').map_or((text, None), |(kind, parameters)| (kind, Some(parameters)));
        let mut policy = Self::from_kind(kind)?;
        if let Some(parameters) = parameters {
            policy.set_parameters(parameters)?;
        }
        policy.validate()?;
        Ok(policy)
    }
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Self::Planner(own) = self {
            return f.pad(&format!("{}:{}", self.kind(), own.name()));
        }
        let mut policy = self.clone();
        let rule = policy.rule_mut();
        let (kind, shows_defaults) = (rule.known().kind, rule.shows_defaults());
        let parameters: Vec<(&str, Option<String>)> = rule.parameters().iter().map(|own| (own.name, own.text())).collect();
        let given: Vec<&String> = parameters.iter().filter_map(|(_, text)| text.as_ref()).collect();
        if given.is_empty() || (!shows_defaults && Self::from_kind(kind).is_ok_and(|default| default == *self)) {
            return f.pad(kind);
        }
        let all = given.len() == parameters.len();
        let shown = parameters.iter().filter_map(|(name, text)| {
            let text = text.as_ref()?;
            Some(if all { text.clone() } else { format!("{name}={text}") })
        });
        f.pad(&format!("{kind}:{}", shown.collect::<Vec<_>>().join(",")))
    }
}

/// Written as a table with the key `kind` and the parameters that were given.
impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut policy = self.clone();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.kind())?;
        for own in policy.rule_mut().parameters() {
            if let Some(value) = own.toml() {
                map.serialize_entry(own.name, &value)?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = toml::Table::deserialize(deserializer)?;
        let kind = table.get("kind").and_then(toml::Value::as_str).ok_or_else(|| D::Error::missing_field("kind"))?;
        let read = || {
            let mut policy = Self::from_kind(kind)?;
            let kind = policy.kind();
            let mut parameters = policy.rule_mut().parameters();
            for (name, value) in table.iter().filter(|(name, _)| *name != "kind") {
                match parameters.iter_mut().find(|own| own.name == name) {
                    Some(own) => own.set_toml(kind, value)?,
                    None => {
                        let given = if value.is_table() { name.clone() } else { format!("{name} = {value}") };
                        return Err(PolicyError::NoParameters { kind, given });
                    }
                }
            }
            drop(parameters);
            policy.validate()?;
            Ok(policy)
        };
        // The file has the text that the further lines of an error in a rule would show.
        read().map_err(|error| D::Error::custom(error.to_string().lines().next().unwrap_or_default()))
    }
}
