//! The parts that all records have in common.

use serde_json::Value;

use super::Document;

/// A document with the environment, the command and the warnings of `record`.
pub(super) fn begin(title: &str, record: &Value) -> Document {
    let environment = record.get("environment").unwrap_or(&Value::Null);
    let words = |value: &Value| value.as_array().map(|all| all.iter().filter_map(Value::as_str).map(quoted).collect::<Vec<_>>().join(" "));
    let mut fields = Vec::new();
    flatten("", environment, &mut fields);
    Document {
        title: title.to_owned(),
        command: environment.get("command").and_then(words).unwrap_or_default(),
        environment: fields,
        warnings: strings(record.get("warnings")),
        ..Document::default()
    }
}

/// The strings of a list.
pub(super) fn strings(value: Option<&Value>) -> Vec<String> {
    value.and_then(Value::as_array).map(|all| all.iter().filter_map(Value::as_str).map(str::to_owned).collect()).unwrap_or_default()
}

/// Quotes a word of a command line for a shell, if it needs quotes.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Adds every leaf of `value` to `out`, with its path. A list of plain values is one entry.
pub(super) fn flatten(path: &str, value: &Value, out: &mut Vec<(String, String)>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Null => {}
        Value::Object(fields) => fields.iter().for_each(|(key, value)| flatten(&below(key), value, out)),
        Value::Array(values) if values.iter().any(|value| value.is_object() || value.is_array()) => {
            values.iter().enumerate().for_each(|(index, value)| flatten(&below(&index.to_string()), value, out));
        }
        Value::Array(values) if values.is_empty() => {}
        Value::Array(values) => out.push((path.to_owned(), values.iter().map(leaf).collect::<Vec<_>>().join(" "))),
        _ => out.push((path.to_owned(), leaf(value))),
    }
}

fn leaf(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
