//! The values of a TOML file as types. A reader of the crate `toml` is compiled five times for each type: as a table, an array, twice a
//! date, and a value with its place. Profiles and calibrations have many types, so this was an eighth of the program. The reader here is
//! compiled once for each type.

use std::{fmt, marker::PhantomData, ops::Range};

use serde::{
    Deserializer,
    de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor},
    forward_to_deserialize_any,
};
use toml::{
    Spanned,
    de::{DeString, DeTable, DeValue},
    map,
};

use super::document::line_at;

/// Why a text can't be read as TOML, or its values not as a type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// What is wrong.
    pub message: String,
    /// Where it is in the text, in bytes.
    pub at: Option<Range<usize>>,
}

impl Fault {
    /// What is wrong, after its line in `text`.
    pub fn with_line(&self, text: &str) -> String {
        self.at.as_ref().map_or_else(String::new, |at| format!("line {}: ", line_at(text, at.start))) + self.message.trim()
    }
}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string(), at: None }
    }
}

impl From<toml::de::Error> for Fault {
    fn from(error: toml::de::Error) -> Self {
        Self { message: error.message().to_owned(), at: error.span() }
    }
}

/// Reads `text` as TOML, and its values as a `T`. Dates are read as text, and enums only by their name.
///
/// # Errors
/// [`Fault`].
pub fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    let table = DeTable::parse(text)?;
    Value(&Spanned::new(table.span(), DeValue::Table(table.into_inner()))).read(PhantomData)
}

#[derive(Clone, Copy)]
struct Value<'a>(&'a Spanned<DeValue<'a>>);

impl Value<'_> {
    /// Reads the value. A fault without a place gets that of the value.
    fn read<'de, T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        placed(seed.deserialize(self), self.0.span())
    }

    fn is_not(self, expected: &dyn de::Expected) -> Fault {
        let found = match self.0.get_ref() {
            DeValue::String(text) => Unexpected::Str(text),
            DeValue::Integer(number) => {
                i64::from_str_radix(number.as_str(), number.radix()).map_or(Unexpected::Other("integer"), Unexpected::Signed)
            }
            DeValue::Float(number) => number.as_str().parse().map_or(Unexpected::Other("float"), Unexpected::Float),
            DeValue::Boolean(value) => Unexpected::Bool(*value),
            DeValue::Datetime(_) => Unexpected::Other("datetime"),
            DeValue::Array(_) => Unexpected::Seq,
            DeValue::Table(_) => Unexpected::Map,
        };
        de::Error::invalid_type(found, expected)
    }
}

fn placed<T>(result: Result<T, Fault>, place: Range<usize>) -> Result<T, Fault> {
    result.map_err(|fault| Fault { at: fault.at.or(Some(place)), ..fault })
}

impl<'de> Deserializer<'de> for Value<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0.get_ref() {
            DeValue::String(text) => visitor.visit_str(text),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(value) => visitor.visit_i64(value),
                Err(_) => match u64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(value) => visitor.visit_u64(value),
                    Err(_) => Err(de::Error::custom("the whole number has more than 64 bits")),
                },
            },
            DeValue::Float(number) => match number.as_str().parse::<f64>() {
                Ok(value) if value.is_finite() || !number.as_str().contains(|c: char| c.is_ascii_digit()) => visitor.visit_f64(value),
                _ => Err(de::Error::custom("the number is too large")),
            },
            DeValue::Boolean(value) => visitor.visit_bool(*value),
            DeValue::Datetime(date) => visitor.visit_string(date.to_string()),
            DeValue::Array(values) => visitor.visit_seq(Elements(values.iter())),
            DeValue::Table(table) => visitor.visit_map(Entries { rest: table.iter(), value: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0.get_ref() {
            DeValue::Array(values) => visitor.visit_seq(Elements(values.iter())),
            _ => Err(self.is_not(&visitor)),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0.get_ref() {
            DeValue::Table(table) => visitor.visit_map(Entries { rest: table.iter(), value: None }),
            _ => Err(self.is_not(&visitor)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(self, _: &'static str, _: &'static [&'static str], visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(self, _: &'static str, _: &'static [&'static str], visitor: V) -> Result<V::Value, Fault> {
        match self.0.get_ref() {
            DeValue::String(name) => visitor.visit_enum(name.as_ref().into_deserializer()),
            _ => Err(self.is_not(&visitor)),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

/// The rest of an array.
struct Elements<'a>(std::slice::Iter<'a, Spanned<DeValue<'a>>>);

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        self.0.next().map(|value| Value(value).read(seed)).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// The rest of a table.
struct Entries<'a> {
    rest: map::Iter<'a, Spanned<DeString<'a>>, Spanned<DeValue<'a>>>,
    /// The value of the last key.
    value: Option<&'a Spanned<DeValue<'a>>>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((key, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some(value);
        placed(seed.deserialize(key.get_ref().as_ref().into_deserializer()), key.span()).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Fault> {
        match self.value.take() {
            Some(value) => Value(value).read(seed),
            None => Err(de::Error::custom("a value before its key")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Unit {
        OneWord,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Part {
        size: u64,
        unit: Option<Unit>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Whole {
        floats: Vec<f64>,
        pair: (i8, bool),
        parts: BTreeMap<String, Part>,
        part: Part,
    }

    #[test]
    fn values_are_those_of_the_crate_toml() {
        for part in ["size = 0xff_ff", "size = 18446744073709551615\nunit = 'one-word'", "size = 1"] {
            let text = format!("floats = [1.5, -inf, 1e3, 7]\npair = [-3, true]\nparts.'a b' = {{ size = 0b11 }}\n[part]\n{part}\n");
            let ours: Whole = from_toml(&text).unwrap();
            assert_eq!(ours, toml::from_str(&text).unwrap());
        }
        // Any value, as a table of the crate holds it.
        let text = "a = 1\nb = [1.5, 'x', { c = true }]\n[d.e]\nf = []\n";
        assert_eq!(from_toml::<toml::Table>(text), Ok(toml::from_str(text).unwrap()));
        assert!(from_toml::<Whole>("floats = [nan]\npair = [1, false]\nparts = {}\npart.size = 1").unwrap().floats[0].is_nan());
    }

    #[test]
    fn faults_are_at_the_same_place_as_with_the_crate_toml() {
        let good = "floats = []\npair = [1, true]\nparts = {}\n[part]\nsize = 3\n";
        for (from, to) in [
            ("= 3", "= -3"),
            ("= 3", "= 'three'"),
            ("= 3", "= 3.5"),
            ("size = 3", "sizes = 3"),
            ("size = 3", ""),
            ("= 3\n", "= 3\nunit = 'two'\n"),
            ("[1, true]", "[1]"),
            ("[1, true]", "[300, true]"),
            ("floats = []", "floats = ['x']"),
            ("floats = []", "floats = 1"),
            ("parts = {}", "parts = { a = { size = 1, more = 2 } }"),
            ("parts = {}", "parts = 7"),
            ("parts = {}", "parts = {"),
            ("[part]\nsize = 3", "part = 3"),
        ] {
            let text = good.replace(from, to);
            let (ours, theirs) = (from_toml::<Whole>(&text).unwrap_err(), toml::from_str::<Whole>(&text).unwrap_err());
            assert_eq!((ours.at, ours.message.as_str()), (theirs.span(), theirs.message()), "{text}");
        }
        let error = from_toml::<Part>("\nsize = 99999999999999999999").unwrap_err();
        assert_eq!(error.with_line("\nsize = 99999999999999999999"), "line 2: the whole number has more than 64 bits");
        assert_eq!(from_toml::<BTreeMap<String, f64>>("a = 1e999").unwrap_err().message, "the number is too large");
        assert_eq!(from_toml::<BTreeMap<String, String>>("a = 2026-01-02").unwrap()["a"], "2026-01-02");
        assert!(from_toml::<Part>("size = 1\nunit = 3").is_err());
    }
}
