//! The header of NumPy's `.npy` files. It is implemented here, since it takes few lines.

use std::io::{self, Read};

/// First bytes of every NumPy file.
pub(crate) const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// What the header says of the numbers that follow it.
#[derive(Debug)]
pub(crate) struct Head {
    /// Their type: "<i8" for 64-bit integers.
    pub(crate) descr: String,
    /// Whether columns follow each other, and not rows.
    pub(crate) is_fortran: bool,
    /// The shape as it is written: "(2, 3)".
    pub(crate) shape: String,
}

impl Head {
    /// Reads the header. The inner error says what is wrong with it; an outer one that the file ends is [`io::ErrorKind::UnexpectedEof`].
    pub(crate) fn read(from: &mut impl Read) -> io::Result<Result<Self, String>> {
        let mut start = [0; 8];
        from.read_exact(&mut start)?;
        if &start[..6] != MAGIC {
            return Ok(Err("not a NumPy file (it does not start as one)".to_owned()));
        }
        let mut length = [0; 4];
        // The length of the header has 2 bytes in version 1 and 4 in versions 2 and 3.
        let digits = if start[6] == 1 { 2 } else { 4 };
        from.read_exact(&mut length[..digits])?;
        let length = u32::from_le_bytes(length);
        if length > 4096 {
            return Ok(Err(format!("its header claims {length} bytes, far more than an array of numbers needs")));
        }
        let mut head = vec![0; length as usize];
        from.read_exact(&mut head)?;
        let head = String::from_utf8_lossy(&head).into_owned();
        Ok(Ok(Self {
            descr: field(&head, "descr").map(|value| value.trim_matches(['\'', '"'])).unwrap_or_default().to_owned(),
            is_fortran: field(&head, "fortran_order") == Some("True"),
            shape: field(&head, "shape").unwrap_or_default().to_owned(),
        }))
    }

    /// The numbers of the shape (`None`: it has something else).
    pub(crate) fn dimensions(&self) -> Option<Vec<u64>> {
        let inner = self.shape.strip_prefix('(')?.strip_suffix(')')?.trim();
        let inner = inner.strip_suffix(',').unwrap_or(inner);
        inner.split(',').map(|number| number.trim().parse().ok()).collect()
    }
}

/// The header of an array of these numbers, row by row, in version 1.0.
pub(crate) fn head(descr: &str, shape: &[u64]) -> Vec<u8> {
    let shape: String = shape.iter().map(|length| format!("{length}, ")).collect();
    let shape = if shape.matches(',').count() > 1 { shape.trim_end_matches(", ") } else { shape.trim_end() };
    let dictionary = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    // The header, of which 10 bytes precede the dictionary, ends with a line feed and fills a multiple of 64 bytes.
    let padded = (10 + dictionary.len() + 1).next_multiple_of(64) - 10;
    let mut head = MAGIC.to_vec();
    head.extend([1, 0]);
    // At most 128 bytes: the longest length has 20 digits.
    head.extend((padded as u16).to_le_bytes());
    head.extend(format!("{dictionary:<width$}\n", width = padded - 1).bytes());
    head
}

/// The value of `key` in the dictionary of the header, as it is written.
fn field<'t>(head: &'t str, key: &str) -> Option<&'t str> {
    let (_, rest) = head.split_once(&format!("'{key}'"))?;
    let value = rest.trim_start().strip_prefix(':')?.trim_start();
    let end = if value.starts_with('(') { value.find(')')? + 1 } else { value.find([',', '}'])? };
    Some(value[..end].trim())
}
