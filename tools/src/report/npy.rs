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
        // The bytes of the length of the header.
        let digits = match start[6] {
            1 => 2,
            2 | 3 => 4,
            version => return Ok(Err(format!("it is of version {version} of the format, and 1 to 3 are known"))),
        };
        from.read_exact(&mut length[..digits])?;
        let length = u32::from_le_bytes(length);
        if length > 4096 {
            return Ok(Err(format!("its header claims {length} bytes, far more than an array of numbers needs")));
        }
        let mut head = vec![0; length as usize];
        from.read_exact(&mut head)?;
        Ok(Self::of(&String::from_utf8_lossy(&head)))
    }

    /// What the dictionary of a header says.
    fn of(head: &str) -> Result<Self, String> {
        let value = |key| field(head, key).ok_or_else(|| format!("its header does not have '{key}' once"));
        let is_fortran = match value("fortran_order")? {
            "True" => true,
            "False" => false,
            order => return Err(format!("its header has {order} for 'fortran_order', neither True nor False")),
        };
        let descr = value("descr")?.trim_matches(['\'', '"']).to_owned();
        Ok(Self { descr, is_fortran, shape: value("shape")?.to_owned() })
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

/// The value of `key` in the dictionary of the header, as it is written; `None` if the key is not there once.
fn field<'t>(head: &'t str, key: &str) -> Option<&'t str> {
    let quoted = format!("'{key}'");
    let (_, rest) = head.split_once(&quoted).filter(|(_, rest)| !rest.contains(&quoted))?;
    let value = rest.trim_start().strip_prefix(':')?.trim_start();
    let end = if value.starts_with('(') { value.find(')')? + 1 } else { value.find([',', '}'])? };
    Some(value[..end].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_numpy_writes_it_or_refused() {
        let read = |version: u8, dictionary: &str| {
            let mut bytes = MAGIC.to_vec();
            bytes.extend([version, 0]);
            bytes.extend(&(dictionary.len() as u32).to_le_bytes()[..if version == 1 { 2 } else { 4 }]);
            bytes.extend(dictionary.bytes());
            Head::read(&mut &bytes[..]).unwrap()
        };
        let right = "{'descr': '|i1', 'fortran_order': True, 'shape': (3, 2), }";
        for version in 1..=3 {
            let head = read(version, right).unwrap();
            assert_eq!((head.is_fortran, &head.descr[..], head.dimensions()), (true, "|i1", Some(vec![3, 2])));
        }
        assert!(read(0, right).unwrap_err().contains("version 0") && read(4, right).is_err());
        for (there, instead) in [("True", "1"), ("True", "true"), ("'fortran_order'", "\"fortran_order\""), ("'fortran_order': True, ", "")]
        {
            assert!(read(1, &right.replace(there, instead)).unwrap_err().contains("'fortran_order'"), "{instead}");
        }
        assert!(read(1, &right.replace("}", "'fortran_order': False, }")).unwrap_err().contains("once"));
    }
}
