//! NumPy's arrays of two dimensions and one byte for a cell, which is free if it is not 0.

use super::{BLOCKED, Cells, FREE, Fault, reserve};
use crate::report::npy::Head;

pub(super) fn read(bytes: &[u8]) -> Result<Cells, Fault> {
    let mut rest = bytes;
    let head = Head::read(&mut rest).map_err(|_| Fault::new("it ends within its header", "the file was cut off: copy or save it again"))?;
    let head = head.map_err(|reason| Fault::new(reason, "save the array again with numpy.save"))?;
    if !matches!(head.descr.as_bytes(), [b'|' | b'<' | b'>' | b'=', b'b' | b'u' | b'i', b'1']) {
        let reason = format!("its values are {:?}", head.descr);
        return Err(Fault::new(reason, "a map has bool, int8 or uint8: save it with `.astype(bool)`"));
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
    let cell = |&byte: &u8| if byte == 0 { BLOCKED } else { FREE };
    if head.is_fortran {
        (0..rows).for_each(|row| cells.extend(rest[row..].iter().step_by(rows).map(cell)));
    } else {
        cells.extend(rest.iter().map(cell));
    }
    Ok(Cells { format: "NumPy", rows, columns, cells })
}
