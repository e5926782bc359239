//! The maps of the benchmarks of MovingAI (<https://movingai.com/benchmarks/formats.html>): four lines, then a character for each cell.

use super::{BLOCKED, Cells, FREE, Fault, LENGTH, length, reserve, shown};

pub(super) fn read(bytes: &[u8]) -> Result<Cells, Fault> {
    let mut lines = bytes.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).zip(1..);
    let [mut rows, mut columns] = [None; 2];
    loop {
        let (line, number) = lines.next().ok_or_else(|| Fault::new("there is no line `map`", "the file was cut off: copy it again"))?;
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let (key, value) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let size = match (key, value, words.next()) {
            (b"type", b"octile", None) => continue,
            (b"height", _, None) => &mut rows,
            (b"width", _, None) => &mut columns,
            (b"map", b"", _) => break,
            _ => {
                let cure = "a map begins with the lines `type octile`, `height ROWS`, `width COLUMNS` and `map`";
                return Err(Fault::in_line(number, format!("{} is not known", shown(line)), cure));
            }
        };
        let name = String::from_utf8_lossy(key);
        let given = length(value).ok_or_else(|| Fault::in_line(number, format!("the {name} is {}", shown(value)), LENGTH))?;
        if size.replace(given).is_some() {
            return Err(Fault::in_line(number, format!("the {name} is given twice"), "remove one of the lines"));
        }
    }
    let (Some(rows), Some(columns)) = (rows, columns) else {
        return Err(Fault::new("the size is missing", "add the lines `height ROWS` and `width COLUMNS` before `map`"));
    };
    let mut cells = Vec::new();
    for row in 0..rows {
        let Some((line, number)) = lines.next().filter(|(line, _)| !line.is_empty()) else {
            return Err(Fault::new(format!("it ends after {row} of {rows} rows"), "the file was cut off: copy it again"));
        };
        if line.len() != columns {
            let cure = "correct `width`, or copy the file again if it was cut off";
            return Err(Fault::in_line(number, format!("the row has {} of {columns} cells", line.len()), cure));
        }
        reserve(&mut cells, columns)?;
        for (column, &cell) in line.iter().enumerate() {
            cells.push(match cell {
                b'.' | b'G' | b'S' => FREE,
                b'@' | b'O' | b'T' | b'W' => BLOCKED,
                _ => {
                    let reason = format!("column {column} is {}", shown(&[cell]));
                    return Err(Fault::in_line(number, reason, "free cells are . G S, blocked ones @ O T W"));
                }
            });
        }
    }
    match lines.find(|(line, _)| !line.trim_ascii().is_empty()) {
        Some((line, number)) => Err(Fault::in_line(number, format!("{} follows {rows} rows", shown(line)), "correct `height`")),
        None => Ok(Cells { format: "MovingAI", rows, columns, cells }),
    }
}
