//! One regular expression: its row, and the node made of it.

use super::dialect::translated;
use super::literals::needed;
use super::value::RegexpValue;
use crate::error::DictError;
use crate::limits;
use crate::lookup_key::Flags;
use crate::row::{BadRow, Raw, are_items, is_utf8, items, put, put_varint, text_span};
use crate::types::DataType;
use regex_automata::meta::Regex;
use regex_automata::nfa::thompson::WhichCaptures;

/// Name and type of an attribute.
pub(in crate::full_load) type Named = (String, DataType);

/// A row of the source, whose key is the id.
pub(super) struct NodeRow<'r> {
    pub parent_id: u64,
    pub regexp: &'r str,
    /// Places of attributes, and the texts of their values.
    pub values: Vec<(usize, &'r str)>,
}

impl<'r> NodeRow<'r> {
    /// Parses what follows the id. Keys that are no attributes are left out; of a key that comes twice the last value
    /// counts, at the place of the first.
    ///
    /// # Errors
    /// `INCORRECT_DICTIONARY_DEFINITION` if there are not as many values as keys.
    pub fn of(id: u64, row: &'r [u8], attributes: &[Named]) -> Result<NodeRow<'r>, DictError> {
        let parts = || {
            let (parent_id, _) = row.split_first_chunk::<8>()?;
            let (start, end) = text_span(row, 8)?;
            let keys = text_span(row, end)?;
            let values = text_span(row, keys.1)?;
            let regexp = std::str::from_utf8(&row[start..end]).ok()?;
            let (keys, values) = (&row[keys.0..keys.1], &row[values.0..values.1]);
            Some((*parent_id, regexp, texts(keys)?, texts(values)?))
        };
        let (parent_id, regexp, keys, texts) = parts().ok_or(BadRow)?;
        if keys.len() != texts.len() {
            let (keys, values) = (keys.len(), texts.len());
            let message = format!("Regular expression {id} has {keys} keys and {values} values");
            return Err(DictError::definition(message));
        }
        let mut values: Vec<(usize, &str)> = Vec::new();
        for (key, text) in keys.into_iter().zip(texts) {
            let Some(attribute) = attributes.iter().position(|(name, _)| name == key) else { continue };
            match values.iter_mut().find(|(known, _)| *known == attribute) {
                Some((_, value)) => *value = text,
                None => values.push((attribute, text)),
            }
        }
        Ok(NodeRow { parent_id: u64::from_le_bytes(parent_id), regexp, values })
    }

    /// The row as ClickHouse shows it: without the keys left out, the last attribute first.
    pub fn put(&self, attributes: &[Named], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.parent_id.to_le_bytes());
        put_varint(out, self.regexp.len());
        out.extend_from_slice(self.regexp.as_bytes());
        let mut list = |texts: &mut dyn Iterator<Item = &str>| {
            let mut bytes = Vec::new();
            texts.for_each(|text| put(&DataType::String, &Raw::Text(text.as_bytes()), &mut bytes));
            put_varint(out, bytes.len());
            out.extend_from_slice(&bytes);
        };
        list(&mut self.values.iter().rev().map(|(attribute, _)| attributes[*attribute].0.as_str()));
        list(&mut self.values.iter().rev().map(|(_, text)| *text));
    }
}

fn texts(list: &[u8]) -> Option<Vec<&str>> {
    let text = |raw| match raw {
        Raw::Text(text) if is_utf8(text) => std::str::from_utf8(text).ok(),
        _ => None,
    };
    are_items(&DataType::String, list).then(|| items(&DataType::String, list).map(text).collect())?
}

/// How expressions are read.
#[derive(Clone, Copy)]
pub(super) struct Compiling {
    pub flags: Flags,
    /// Bytes of a thread's search cache for one expression.
    pub cache_bytes: usize,
}

/// Characters of an expression that an error shows.
const SHOWN_MAX: usize = 200;

/// Texts of which every match of an expression contains one; `None`: none are known.
type Needed = Option<Vec<Vec<u8>>>;

/// A regular expression, and the values of texts in which it is found.
pub(super) struct RegexpNode {
    pub regexp: Regex,
    pub parent: Option<u32>,
    pub values: Vec<(usize, RegexpValue)>,
}

impl RegexpNode {
    /// The node, and texts of which every match contains one, if any are known.
    ///
    /// # Errors
    /// `INCORRECT_DICTIONARY_DEFINITION` if it is no regular expression, or has a value that is none of its type.
    pub fn of(
        id: u64,
        row: &NodeRow<'_>,
        parent: Option<u32>,
        attributes: &[Named],
        compiling: Compiling,
    ) -> Result<(RegexpNode, Needed), DictError> {
        let value = |(attribute, text): &(usize, &str)| {
            RegexpValue::parse(text, &attributes[*attribute].1).map(|value| (*attribute, value))
        };
        let values = row.values.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        let has_groups = values.iter().any(|(_, value)| matches!(value, RegexpValue::Made(_)));
        let captures = if has_groups { WhichCaptures::All } else { WhichCaptures::Implicit };
        let (regexp, texts) = compiled(row.regexp, compiling, captures).map_err(|what| {
            let regexp: String = row.regexp.chars().take(SHOWN_MAX).collect();
            DictError::definition(format!("Regular expression {id} cannot be read: {what}: {regexp}"))
        })?;
        Ok((RegexpNode { regexp, parent, values }, texts))
    }

    pub fn bytes_allocated(&self) -> usize {
        let values =
            self.values.iter().map(|(_, value)| value.bytes_allocated() + size_of::<(usize, RegexpValue)>());
        size_of::<RegexpNode>() + self.regexp.memory_usage() + values.sum::<usize>()
    }
}

/// Whether an expression can be read. Asserts that a text in which it is found contains one of its needed texts.
pub(crate) fn check_needed(regexp: &str, text: &str) -> bool {
    let compiling = Compiling { flags: Flags::default(), cache_bytes: limits::REGEXP_CACHE_BYTES };
    let Ok((regexp, needed)) = compiled(regexp, compiling, WhichCaptures::All) else { return false };
    if let Some(needed) = needed.filter(|_| regexp.is_match(text)) {
        let text = text.to_ascii_lowercase();
        let has = |part: &Vec<u8>| text.as_bytes().windows(part.len()).any(|window| window == part);
        assert!(needed.iter().any(has), "{text:?} has none of {needed:?}");
    }
    true
}

type Compiled = (Regex, Needed);

fn compiled(
    regexp: &str,
    Compiling { flags, cache_bytes }: Compiling,
    captures: WhichCaptures,
) -> Result<Compiled, String> {
    if regexp.len() > limits::REGEXP_TEXT_BYTES_MAX {
        return Err(format!("it is longer than {} bytes", limits::REGEXP_TEXT_BYTES_MAX));
    }
    let hir = regex_syntax::ParserBuilder::new()
        .utf8(false)
        .case_insensitive(flags.ignores_case)
        .dot_matches_new_line(flags.dot_is_any)
        .build()
        .parse(&translated(regexp)?)
        .map_err(|error| match error {
            regex_syntax::Error::Parse(error) => error.kind().to_string(),
            regex_syntax::Error::Translate(error) => error.kind().to_string(),
            other => other.to_string(),
        })?;
    let config = Regex::config()
        .utf8_empty(false)
        .which_captures(captures)
        .nfa_size_limit(Some(limits::REGEXP_BYTES_MAX))
        .hybrid_cache_capacity(cache_bytes);
    let regexp = Regex::builder().configure(config).build_from_hir(&hir).map_err(|error| {
        match error.size_limit() {
            Some(most) => format!("it takes more than {most} bytes"),
            None => error.to_string(),
        }
    })?;
    Ok((regexp, needed(&hir)))
}
