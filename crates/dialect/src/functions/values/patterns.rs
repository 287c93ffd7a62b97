//! Regular expressions, as RE2 reads them.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, StringArray, UInt8Array, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::Result;
use granary_dict::regexp_of_re2;
use regex_automata::meta::{Config, Regex};
use regex_automata::util::captures::Captures;
use regex_automata::util::syntax;
use regex_automata::{Input, PatternID};

use super::lists::{list_field, list_of_texts};
use super::substrings::broken_letters;
use super::texts::{Texts, add_bytes, all_texts};
use super::{Function, of};
use crate::error::Error;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "match",
        arguments: 2..=2,
        field: |given| all_texts(given).then(|| of(DataType::UInt8)),
        answer: |given, _| {
            let found = each(given, |text, pattern, _| Ok(u8::from(pattern.is_match(text))))?;
            Ok(Arc::new(UInt8Array::from(found)))
        },
    },
    Function {
        name: "countMatches",
        arguments: 2..=2,
        field: |given| all_texts(given).then(|| of(DataType::UInt64)),
        answer: |given, _| {
            let count = |found: regex_automata::Match| !found.is_empty();
            let counts = each(given, |text, pattern, _| {
                Ok(pattern.find_iter(text).filter(|found| count(*found)).count() as u64)
            })?;
            Ok(Arc::new(UInt64Array::from(counts)))
        },
    },
    Function {
        name: "extract",
        arguments: 2..=2,
        field: |given| all_texts(given).then(|| of(DataType::Utf8)),
        answer: |given, _| {
            let first = |text: &str, pattern: &Regex, _| {
                let mut found = pattern.create_captures();
                pattern.captures(text, &mut found);
                Ok(wanted(&found).map_or_else(String::new, |span| text[span].to_owned()))
            };
            Ok(Arc::new(StringArray::from(each(given, first)?)))
        },
    },
    Function {
        name: "extractAll",
        arguments: 2..=2,
        field: |given| all_texts(given).then(|| list_field(Field::new("item", DataType::Utf8, false))),
        answer: |given, field| {
            let all = each(given, |text, pattern, _| {
                let (mut all, mut found, mut at) = (Vec::new(), pattern.create_captures(), 0);
                loop {
                    pattern.captures(Input::new(text).range(at..), &mut found);
                    // An empty match ends the search.
                    let Some(whole) = found.get_match().filter(|whole| !whole.is_empty()) else { break };
                    at = whole.end();
                    all.extend(wanted(&found).map(|span| text[span].to_owned()));
                }
                Ok(all)
            })?;
            list_of_texts(field, all.len(), |row, parts| {
                parts.extend(all[row].iter().cloned());
                Ok(())
            })
        },
    },
    replacement("replaceRegexpOne", |given, _| replaced(given, 1)),
    replacement("replaceRegexpAll", |given, _| replaced(given, usize::MAX)),
];

const fn replacement(name: &'static str, answer: fn(&[ArrayRef], &Field) -> Result<ArrayRef>) -> Function {
    let field =
        |given: &[datafusion::arrow::datatypes::FieldRef]| all_texts(given).then(|| of(DataType::Utf8));
    Function { name, arguments: 3..=3, field, answer }
}

/// The span to extract: the first group, or the whole match if there is none.
fn wanted(found: &Captures) -> Option<std::ops::Range<usize>> {
    let group = usize::from(found.group_len() > 1);
    found.is_match().then(|| found.get_group(group)).flatten().map(|span| span.range())
}

/// Calls `answer` with each text, its pattern, and the row. A pattern repeated in consecutive rows is compiled once.
fn each<T>(given: &[ArrayRef], mut answer: impl FnMut(&str, &Regex, usize) -> Result<T>) -> Result<Vec<T>> {
    let (texts, patterns) = (Texts::of(&given[0])?, Texts::of(&given[1])?);
    let mut last: Option<(String, Regex)> = None;
    let mut answers = Vec::with_capacity(given[0].len());
    for row in 0..given[0].len() {
        let pattern = patterns.at(row);
        if last.as_ref().is_none_or(|(known, _)| known != pattern) {
            last = Some((pattern.to_owned(), regex(pattern)?));
        }
        let (_, regex) = last.as_ref().expect("just set");
        answers.push(answer(texts.at(row), regex, row)?);
    }
    Ok(answers)
}

/// Maximum bytes of a compiled expression.
const REGEX_BYTES_MAX: usize = 8 << 20;

/// Compiles a pattern. A dot matches any letter, line breaks too, as in ClickHouse.
fn regex(pattern: &str) -> Result<Regex> {
    let syntax = syntax::Config::new().dot_matches_new_line(true);
    let config = Config::new().nfa_size_limit(Some(REGEX_BYTES_MAX));
    let unreadable = |why: String| {
        Error::cannot_compile_regexp(format!("The regular expression '{pattern}' cannot be read: {why}"))
    };
    let translated = regexp_of_re2(pattern).map_err(unreadable)?;
    Regex::builder().syntax(syntax).configure(config).build(&translated).map_err(|error| {
        unreadable(error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string)).into()
    })
}

/// The texts with up to `most` matches replaced; `\0` to `\9` insert groups.
fn replaced(given: &[ArrayRef], most: usize) -> Result<ArrayRef> {
    let (patterns, by) = (Texts::of(&given[1])?, Texts::of(&given[2])?);
    let mut bytes = 0;
    let replaced = |text: &str, pattern: &Regex, row| {
        // An empty pattern matches everywhere, and replaces nothing.
        if patterns.at(row).is_empty() {
            return Ok(text.to_owned());
        }
        let by = by.at(row);
        let groups = pattern.group_info().group_len(PatternID::ZERO);
        let mut escapes = by.split('\\').skip(1).filter_map(|behind| behind.chars().next()?.to_digit(10));
        if let Some(group) = escapes.find(|group| *group as usize >= groups) {
            let what = format!("Substitution '{by}' names group {group}, and the pattern has {}", groups - 1);
            return Err(Error::bad_arguments(what).into());
        }
        let (mut made, mut copied, mut counted) = (String::new(), 0, 0);
        let mut found = pattern.create_captures();
        for _ in 0..most {
            add_bytes(&mut bytes, made.len() - counted)?;
            counted = made.len();
            pattern.captures(Input::new(text).range(copied..), &mut found);
            let Some(all) = found.get_match() else { break };
            made.push_str(&text[copied..all.start()]);
            copied = all.end();
            let mut letters = by.chars();
            while let Some(letter) = letters.next() {
                let escaped = if letter == '\\' { letters.next() } else { None };
                match escaped {
                    None => made.push(letter),
                    Some(digit) if digit.is_ascii_digit() => {
                        let group = digit as usize - '0' as usize;
                        made.push_str(found.get_group(group).map_or("", |span| &text[span.range()]));
                    }
                    Some(other) => made.push(other),
                }
            }
            // After an empty match, the search continues after the next byte.
            if all.is_empty() && most > 1 {
                match text[copied..].chars().next() {
                    Some(letter) if letter.is_ascii() => made.push(letter),
                    Some(_) => return Err(broken_letters("replaceRegexpAll", text).into()),
                    None => break,
                }
                copied += 1;
            }
        }
        made.push_str(&text[copied..]);
        add_bytes(&mut bytes, made.len() - counted)?;
        Ok(made)
    };
    Ok(Arc::new(StringArray::from(each(given, replaced)?)))
}
