//! Texts of which every match of a regular expression contains one.

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

/// At most this many texts are followed at once.
const TEXTS_MAX: usize = 16;
/// A class of more characters counts as any character.
const CLASS_MAX: usize = 4;
/// A repetition with a greater count is not written out.
const REPEATED_MAX: u32 = 4;
/// Longer texts distinguish no better.
const LENGTH_MAX: usize = 32;
/// A shorter text occurs in too many others.
const LENGTH_MIN: usize = 2;

type LiteralTexts = Vec<Vec<u8>>;

/// Lower-case (ASCII) texts of which every match contains one; `None`: none are known.
pub(super) fn needed(hir: &Hir) -> Option<LiteralTexts> {
    known(hir).needed.filter(|texts| length(texts) >= LENGTH_MIN)
}

/// What is known of the matches of an expression.
#[derive(Clone, Default)]
struct MatchTexts {
    /// Every match equals one of these texts.
    exact: Option<LiteralTexts>,
    /// Every match contains one of these texts; none is empty.
    needed: Option<LiteralTexts>,
}

impl MatchTexts {
    fn exactly(texts: LiteralTexts) -> MatchTexts {
        MatchTexts { needed: not_empty(&texts), exact: Some(texts) }
    }
}

fn known(hir: &Hir) -> MatchTexts {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => MatchTexts::exactly(vec![Vec::new()]),
        HirKind::Literal(literal) if literal.0.len() > LENGTH_MAX => {
            MatchTexts { exact: None, needed: Some(vec![literal.0[..LENGTH_MAX].to_ascii_lowercase()]) }
        }
        HirKind::Literal(literal) => MatchTexts::exactly(vec![literal.0.to_ascii_lowercase()]),
        HirKind::Class(class) => characters(class).map_or_else(MatchTexts::default, MatchTexts::exactly),
        HirKind::Capture(capture) => known(&capture.sub),
        HirKind::Repetition(repetition) => repeated(repetition),
        HirKind::Concat(parts) => joined(parts.iter().map(known)),
        HirKind::Alternation(parts) => chosen(parts.iter().map(known)),
    }
}

fn characters(class: &Class) -> Option<LiteralTexts> {
    let mut texts = Vec::new();
    match class {
        Class::Unicode(class) => {
            for range in class.ranges() {
                if range.len() > CLASS_MAX {
                    return None;
                }
                texts.extend(
                    (range.start()..=range.end()).map(|c| c.to_ascii_lowercase().to_string().into_bytes()),
                );
            }
        }
        Class::Bytes(class) => {
            for range in class.ranges() {
                if range.len() > CLASS_MAX {
                    return None;
                }
                texts.extend((range.start()..=range.end()).map(|byte| vec![byte.to_ascii_lowercase()]));
            }
        }
    }
    bounded(texts, CLASS_MAX)
}

fn repeated(repetition: &Repetition) -> MatchTexts {
    let MatchTexts { exact, needed } = known(&repetition.sub);
    match (repetition.min, repetition.max) {
        (0, Some(1)) => {
            let with_none = exact.and_then(|texts| bounded([texts, vec![Vec::new()]].concat(), TEXTS_MAX));
            MatchTexts { exact: with_none, needed: None }
        }
        (0, _) => MatchTexts::default(),
        (least, Some(most)) if least == most && least <= REPEATED_MAX => {
            joined((0..least).map(|_| MatchTexts { exact: exact.clone(), needed: needed.clone() }))
        }
        _ => MatchTexts { exact: None, needed },
    }
}

/// A concatenation: the best of the runs of exactly known parts and of what single parts need.
fn joined(parts: impl Iterator<Item = MatchTexts>) -> MatchTexts {
    let mut all: Option<LiteralTexts> = Some(vec![Vec::new()]);
    let mut run: LiteralTexts = vec![Vec::new()];
    let mut best = None;
    for part in parts {
        best = better(best, part.needed);
        let Some(texts) = part.exact else {
            best = better(best, not_empty(&run));
            run = vec![Vec::new()];
            all = None;
            continue;
        };
        match product(&run, &texts) {
            Some(longer) => run = longer,
            None => {
                best = better(best, not_empty(&run));
                run = texts;
                all = None;
            }
        }
    }
    MatchTexts { needed: better(best, not_empty(&run)), exact: all.map(|_| run) }
}

/// Returns what is known of an alternation of `parts`.
fn chosen(parts: impl Iterator<Item = MatchTexts>) -> MatchTexts {
    let (mut exact, mut needed) = (Some(Vec::new()), Some(Vec::new()));
    for part in parts {
        let both = |all: Option<LiteralTexts>, more: Option<LiteralTexts>| {
            bounded([all?, more?].concat(), TEXTS_MAX)
        };
        exact = both(exact, part.exact);
        needed = both(needed, part.needed);
    }
    MatchTexts { exact, needed }
}

fn product(run: &LiteralTexts, texts: &LiteralTexts) -> Option<LiteralTexts> {
    let longer = run.iter().flat_map(|before| texts.iter().map(move |text| [&before[..], text].concat()));
    let longest = |texts: &LiteralTexts| texts.iter().map(Vec::len).max().unwrap_or(0);
    if run.len() * texts.len() > TEXTS_MAX * TEXTS_MAX || longest(run) + longest(texts) > LENGTH_MAX {
        return None;
    }
    bounded(longer.collect(), TEXTS_MAX)
}

/// The texts without duplicates, if they are at most `most`.
fn bounded(mut texts: LiteralTexts, most: usize) -> Option<LiteralTexts> {
    texts.sort_unstable();
    texts.dedup();
    (texts.len() <= most).then_some(texts)
}

fn not_empty(texts: &LiteralTexts) -> Option<LiteralTexts> {
    (length(texts) > 0).then(|| texts.clone())
}

/// Length of the shortest text.
fn length(texts: &LiteralTexts) -> usize {
    texts.iter().map(Vec::len).min().unwrap_or(0)
}

/// The longer texts; of equally long ones the fewer.
fn better(one: Option<LiteralTexts>, other: Option<LiteralTexts>) -> Option<LiteralTexts> {
    let worth = |texts: &LiteralTexts| (length(texts), usize::MAX - texts.len());
    match (one, other) {
        (Some(one), Some(other)) => Some(if worth(&other) > worth(&one) { other } else { one }),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(regexp: &str) -> Option<Vec<String>> {
        let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(regexp).unwrap();
        needed(&hir).map(|texts| texts.into_iter().map(|text| String::from_utf8(text).unwrap()).collect())
    }

    #[test]
    fn long_texts_are_cut() {
        let long = "ab".repeat(40);
        assert_eq!(texts(&long).unwrap(), [&long[..LENGTH_MAX]]);
        let bounded = |regexp: &str| texts(regexp).unwrap().iter().all(|text| text.len() <= LENGTH_MAX);
        assert!(bounded(&"(ab)".repeat(1000)) && bounded(&format!("[xy]{long}")));
    }

    #[test]
    fn the_longest_text_that_each_match_has() {
        for (regexp, needed) in [
            ("abc", &["abc"][..]),
            ("^[0-9]+/TclWebkit([0-9]+[.0-9]*)$", &["/tclwebkit"]),
            ("(?i)Firefox", &["firefox"]),
            ("(?i)Ask", &["ask", "as\u{212a}", "a\u{17f}k", "a\u{17f}\u{212a}"]),
            ("x(?:foo|ba[rz])y", &["xbary", "xbazy", "xfooy"]),
            ("(?:foo.*|bar+)", &["ba", "foo"]),
            ("ab?c.*defg?", &["def"]),
            ("(?:ab){2}c*", &["abab"]),
            ("a.bc.d", &["bc"]),
            ("colou?r", &["color", "colour"]),
        ] {
            let mut found = texts(regexp).unwrap_or_else(|| panic!("{regexp}"));
            found.sort();
            let mut needed: Vec<&str> = needed.to_vec();
            needed.sort();
            assert_eq!(found, needed, "{regexp}");
        }
    }

    #[test]
    fn none_where_a_match_may_have_none_or_too_short_a_one() {
        for regexp in ["", ".*", "a", "(?:abc)?", "(?:abc)*", "abc|", "abc|x", "[a-z]+", "a.b", "abc|.", "^$"]
        {
            assert_eq!(texts(regexp), None, "{regexp}");
        }
    }

    #[test]
    fn many_texts_are_given_up_and_the_rest_counts() {
        assert_eq!(texts("[abc][abc][abc]def"), Some(["adef", "bdef", "cdef"].map(String::from).to_vec()));
        assert_eq!(texts("(?:[ab]{1,3}x){9}"), None);
    }
}
