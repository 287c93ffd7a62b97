//! Suggestions for unknown names.

use strsim::generic_levenshtein;

/// Maximum number of names suggested.
const HINTS_MAX: usize = 2;

/// The names nearest to a written one, as `['toString']`; `None`: none is near.
pub fn similar<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let bytes = |name: &str| name.to_ascii_lowercase().into_bytes();
    let written = bytes(written);
    let mut near: Vec<(usize, &str)> = names
        .map(|known| (generic_levenshtein(&written, &bytes(known)), known))
        .filter(|(distance, known)| distance * 3 <= known.len())
        .collect();
    near.sort_unstable();
    let near: Vec<String> = near.iter().take(HINTS_MAX).map(|(_, name)| format!("'{name}'")).collect();
    (!near.is_empty()).then(|| format!("[{}]", near.join(", ")))
}
