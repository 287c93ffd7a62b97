//! Suggestions for unknown names.

/// Maximum number of names suggested.
const HINTS_MAX: usize = 2;

/// The names nearest to a written one, as `['toString']`; `None`: none is near.
pub fn similar<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let written = written.to_ascii_lowercase();
    let mut near: Vec<(usize, &str)> = names
        .map(|known| (distance(&written, &known.to_ascii_lowercase()), known))
        .filter(|(distance, known)| distance * 3 <= known.len())
        .collect();
    near.sort_unstable();
    let near: Vec<String> = near.iter().take(HINTS_MAX).map(|(_, name)| format!("'{name}'")).collect();
    (!near.is_empty()).then(|| format!("[{}]", near.join(", ")))
}

/// The number of letters to insert, delete or replace to turn one name into the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}
