//! NumPy's arrays of two dimensions and one byte for a cell: 1 is free, 0 blocked.

use super::{BLOCKED, Cells, FREE, Fault, reserve};
use crate::report::npy::Head;

/// No value but those of a bool says whether it is free: in an occupancy grid of ROS, 0 is.
const CURE: &str =
    "save what is free as bool, such as `(a >= 0) & (a < 20)` of an occupancy grid of ROS (0 free, 100 occupied, -1 unknown)";

pub(super) fn read(bytes: &[u8]) -> Result<Cells, Fault> {
    let mut rest = bytes;
    let head = Head::read(&mut rest).map_err(|_| Fault::new("it ends within its header", "the file was cut off: copy or save it again"))?;
    let head = head.map_err(|reason| Fault::new(reason, "save the array again with numpy.save"))?;
    if !matches!(head.descr.as_bytes(), [b'|' | b'<' | b'>' | b'=', b'b' | b'u' | b'i', b'1']) {
        let reason = format!("its values are {:?}", head.descr);
        return Err(Fault::new(reason, format!("a map has bool, int8 or uint8: {CURE}")));
    }
    let size = head.dimensions().and_then(|lengths| <[u64; 2]>::try_from(lengths).ok());
    let size = size.map(|size| size.map(|length| usize::try_from(length).unwrap_or(usize::MAX)));
    let Some([rows, columns]) = size.filter(|size| !size.contains(&0)) else {
        return Err(Fault::new(format!("its shape is {}", head.shape), "a map has rows and columns, one of each at least"));
    };
    let needs = rows.saturating_mul(columns);
    if rest.len() != needs {
        return Err(Fault::length(bytes.len() - rest.len(), format!("{rows} x {columns} cells"), rest.len(), needs));
    }
    let mut cells = Vec::new();
    reserve(&mut cells, needs)?;
    if let Some(at) = rest.iter().position(|&byte| byte > 1) {
        let value = if head.descr.ends_with("i1") { i16::from(rest[at] as i8) } else { i16::from(rest[at]) };
        return Err(Fault::at_byte(bytes.len() - rest.len() + at, format!("a cell is {value}, neither 1 (free) nor 0 (blocked)"), CURE));
    }
    let cell = |&byte: &u8| if byte == 0 { BLOCKED } else { FREE };
    if head.is_fortran {
        (0..rows).for_each(|row| cells.extend(rest[row..].iter().step_by(rows).map(cell)));
    } else {
        cells.extend(rest.iter().map(cell));
    }
    Ok(Cells { format: "NumPy", rows, columns, cells })
}
