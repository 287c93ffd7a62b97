//! Looking for all regular expressions in one text after another.

use super::Regexps;
use super::value::{RegexpValue, made};
use crate::error::DictError;
use crate::limits;
use crate::row::{Cell, Column, Raw};
use crate::types::DataType;
use arrow::array::{ArrayRef, BooleanArray, BooleanBufferBuilder};
use regex_automata::util::captures::Captures;

/// How many values of an attribute are wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ValueLimit {
    /// The first, or the attribute's default.
    One,
    /// At most this many, in an array.
    Many(usize),
}

/// The search for some attributes, and what has been found so far.
pub(crate) struct Search<'r> {
    regexps: &'r Regexps,
    most: ValueLimit,
    /// Place in `wanted`, by attribute.
    slots: Vec<Option<usize>>,
    wanted: Vec<WantedAttribute<'r>>,
    /// How many of `wanted` are complete for the text.
    complete: usize,
    /// Bytes that may still be made for the text.
    bytes_left: usize,
    /// Counts texts: marks with another number belong to another text.
    round: u32,
    marks: Vec<Marks>,
    candidates: Vec<u32>,
    path: Vec<u32>,
}

/// A wanted attribute, and its values.
struct WantedAttribute<'r> {
    attribute: usize,
    /// Values of the current text.
    values: Vec<MatchedValue<'r>>,
    /// No more values of it are wanted.
    is_complete: bool,
    /// Values of all texts.
    column: Column,
    found: BooleanBufferBuilder,
}

enum MatchedValue<'r> {
    Known(&'r Cell),
    Made(Cell),
}

/// What is known of a node: the number of the text for which it holds.
#[derive(Clone, Copy, Default)]
struct Marks {
    /// The text contains what the expression needs.
    candidate: u32,
    /// The expression was looked for.
    tried: u32,
    /// It was found, as were all its ancestors.
    matched: u32,
    /// Its values were taken.
    taken: u32,
}

/// The columns of a search, and which of their values were found.
pub(crate) type SearchColumns = Vec<(ArrayRef, BooleanArray)>;

impl<'r> Search<'r> {
    /// A search for the attributes at these places.
    pub fn new(regexps: &'r Regexps, attributes: &[usize], most: ValueLimit, texts: usize) -> Search<'r> {
        let known = &regexps.reading.attributes;
        let mut slots = vec![None; known.len()];
        let mut wanted = Vec::new();
        for &attribute in attributes {
            if slots[attribute].is_some() {
                continue;
            }
            slots[attribute] = Some(wanted.len());
            let data_type = match most {
                ValueLimit::One => known[attribute].1.clone(),
                ValueLimit::Many(_) => DataType::Array(Box::new(known[attribute].1.clone())),
            };
            wanted.push(WantedAttribute {
                attribute,
                values: Vec::new(),
                is_complete: false,
                column: Column::with_capacity(&data_type, texts),
                found: BooleanBufferBuilder::new(texts),
            });
        }
        Search {
            regexps,
            most,
            slots,
            wanted,
            complete: 0,
            bytes_left: 0,
            round: 0,
            marks: vec![Marks::default(); regexps.nodes.len()],
            candidates: Vec::new(),
            path: Vec::new(),
        }
    }

    /// Adds the values of a text.
    ///
    /// # Errors
    /// `INCORRECT_DICTIONARY_DEFINITION` if a value made of the text is none of the attribute's type.
    pub fn push(&mut self, text: &str) -> Result<(), DictError> {
        if self.most == ValueLimit::Many(0) {
            self.push_nothing();
            return Ok(());
        }
        self.next_text();
        self.find_candidates(text);
        let candidates = std::mem::take(&mut self.candidates);
        let outcome = candidates.iter().try_for_each(|&place| self.take_from(place, text));
        self.candidates = candidates;
        outcome?;
        self.end_text();
        Ok(())
    }

    /// Adds the values of a text in which nothing is found.
    pub fn push_nothing(&mut self) {
        self.next_text();
        self.end_text();
    }

    /// The columns of these attributes, each of which was wanted.
    pub fn finish(self, attributes: &[usize]) -> Result<SearchColumns, DictError> {
        let column = |wanted: WantedAttribute<'_>| {
            let mut found = wanted.found;
            Ok((wanted.column.finish()?, BooleanArray::new(found.finish(), None)))
        };
        let columns = self.wanted.into_iter().map(column).collect::<Result<Vec<_>, DictError>>()?;
        let slot = |attribute: &usize| self.slots[*attribute].expect("it was wanted");
        Ok(attributes.iter().map(|attribute| columns[slot(attribute)].clone()).collect())
    }

    fn next_text(&mut self) {
        self.round = match self.round.checked_add(1) {
            Some(round) => round,
            None => {
                self.marks.fill(Marks::default());
                1
            }
        };
        self.complete = 0;
        self.bytes_left = limits::ROW_BYTES_MAX;
        for wanted in &mut self.wanted {
            wanted.values.clear();
            wanted.is_complete = false;
        }
    }

    /// Collects the nodes that may be found, in order.
    fn find_candidates(&mut self, text: &str) {
        let Self { candidates, marks, regexps, round, .. } = self;
        candidates.clear();
        candidates.extend_from_slice(&regexps.anywhere);
        for &place in &regexps.anywhere {
            marks[place as usize].candidate = *round;
        }
        regexps.texts.each_in(text, |place| {
            let mark = &mut marks[place as usize].candidate;
            if *mark != *round {
                *mark = *round;
                candidates.push(place);
            }
        });
        candidates.sort_unstable();
    }

    /// Takes the values of a node if it is found, and then those of its ancestors.
    fn take_from(&mut self, place: u32, text: &str) -> Result<(), DictError> {
        if self.complete == self.wanted.len() || self.marks[place as usize].taken == self.round {
            return Ok(());
        }
        if !self.is_found(place, text) {
            return Ok(());
        }
        let mut at = Some(place);
        // If a node's values were taken, so were those of its ancestors.
        while let Some(place) = at
            && self.marks[place as usize].taken != self.round
        {
            self.marks[place as usize].taken = self.round;
            self.take_values(place, text)?;
            at = self.regexps.nodes[place as usize].parent;
        }
        Ok(())
    }

    /// Whether a node and all its ancestors are found: the outermost is looked for first.
    fn is_found(&mut self, place: u32, text: &str) -> bool {
        let Self { regexps, marks, path, round, .. } = self;
        let mut at = Some(place);
        path.clear();
        while let Some(place) = at
            && marks[place as usize].tried != *round
        {
            path.push(place);
            at = regexps.nodes[place as usize].parent;
        }
        let mut is_found = at.is_none_or(|known| marks[known as usize].matched == *round);
        for &place in path.iter().rev() {
            let mark = &mut marks[place as usize];
            is_found =
                is_found && mark.candidate == *round && regexps.nodes[place as usize].regexp.is_match(text);
            mark.tried = *round;
            if is_found {
                mark.matched = *round;
            }
        }
        is_found
    }

    fn take_values(&mut self, place: u32, text: &str) -> Result<(), DictError> {
        let regexps = self.regexps;
        let node = &regexps.nodes[place as usize];
        let mut captures: Option<Captures> = None;
        for (attribute, value) in &node.values {
            let Some(slot) = self.slots[*attribute] else { continue };
            let wanted = &mut self.wanted[slot];
            if wanted.is_complete {
                continue;
            }
            let found = match value {
                RegexpValue::Known(cell) => Some(MatchedValue::Known(cell)),
                RegexpValue::Made(pieces) => {
                    let captures = captures.get_or_insert_with(|| {
                        let mut captures = node.regexp.create_captures();
                        node.regexp.captures(text, &mut captures);
                        captures
                    });
                    let group = |number| {
                        captures.get_group(number).map_or("", |span| text.get(span.range()).unwrap_or(""))
                    };
                    let data_type = &regexps.reading.attributes[*attribute].1;
                    made(pieces, group, data_type, &mut self.bytes_left)?.map(MatchedValue::Made)
                }
            };
            let has_found = found.is_some();
            wanted.values.extend(found);
            wanted.is_complete = match self.most {
                // A group that was not found ends the search for a value, as in ClickHouse.
                ValueLimit::One => true,
                ValueLimit::Many(most) => has_found && wanted.values.len() == most,
            };
            self.complete += usize::from(wanted.is_complete);
        }
        Ok(())
    }

    fn end_text(&mut self) {
        let Self { regexps, wanted, most, .. } = self;
        for wanted in wanted {
            wanted.found.append(!wanted.values.is_empty());
            match most {
                ValueLimit::One => match wanted.values.first() {
                    Some(value) => wanted.column.push_cell(value.cell()),
                    None => wanted.column.push_cell(&regexps.reading.defaults[wanted.attribute]),
                },
                ValueLimit::Many(_) => {
                    let mut items = Vec::new();
                    let item = &regexps.reading.attributes[wanted.attribute].1;
                    wanted.values.iter().for_each(|value| value.cell().put(item, &mut items));
                    wanted.column.push(Raw::Items(&items));
                }
            }
        }
    }
}

impl MatchedValue<'_> {
    fn cell(&self) -> &Cell {
        match self {
            MatchedValue::Known(cell) => cell,
            MatchedValue::Made(cell) => cell,
        }
    }
}
