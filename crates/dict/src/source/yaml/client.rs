//! YAMLREGEXPTREE(PATH): regular expressions in a file of YAML, one list of rules in another.
//!
//! ```yaml
//! - regexp: '(\d+)/webkit'
//!   name: 'browser $1'
//!   # Under any name that is no attribute's: rules that count where this one is found.
//!   versions:
//!     - regexp: '33/webkit'
//!       version: 13
//! ```

use crate::definition::{Definition, Structure};
use crate::error::{Code, DictError};
use crate::limits;
use crate::row::{Raw, put};
use crate::source::file::contents;
use crate::source::rows::Rows;
use crate::source::{BatchSink, Source};
use crate::types::DataType;
use arrow::array::{ArrayRef, RecordBatch};
use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Nothing is kept between reads: the file may be replaced at any time.
pub(crate) struct Yaml {
    path: PathBuf,
    /// The member of a rule that has its regular expression: the key's name.
    regexp: String,
    attributes: HashSet<String>,
    /// The columns of rows.
    structure: Structure,
}

impl Yaml {
    pub fn new(path: &Path, definition: &Definition) -> Yaml {
        let attributes = definition.structure.attributes.iter().map(|attribute| attribute.name.clone());
        Yaml {
            path: path.to_path_buf(),
            regexp: definition.structure.key_columns().swap_remove(0).name,
            attributes: attributes.collect(),
            structure: definition.asked_structure(),
        }
    }

    fn read(&self) -> Result<RecordBatch, DictError> {
        let bytes = contents(&self.path, "")?;
        let text = std::str::from_utf8(&bytes).map_err(|e| parse_error(&e.to_string()));
        text.and_then(|text| self.rows(text))
            .map_err(|e| e.within(format_args!("File {}", self.path.display())))
    }

    /// The rows that a text has.
    pub fn rows(&self, text: &str) -> Result<RecordBatch, DictError> {
        Rules::new(text, self).read()?.finish(&[])
    }
}

impl Source for Yaml {
    fn load(&mut self, _keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        Err(DictError::new(Code::UnsupportedMethod, "YAMLREGEXPTREE is read as a whole"))
    }

    fn load_all(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        sink(self.read()?)
    }
}

/// A file being read. The rules get ids in their order, nested ones after the one that they lie in.
struct Rules<'f> {
    events: Parser<'f, StrInput<'f>>,
    wanted: &'f Yaml,
    rows: Rows,
    last_id: u64,
}

impl<'f> Rules<'f> {
    fn new(text: &'f str, wanted: &'f Yaml) -> Rules<'f> {
        let rows = Rows::new(&wanted.structure);
        Rules { events: Parser::new_from_str(text), wanted, rows, last_id: 0 }
    }

    /// Reads the first document.
    fn read(mut self) -> Result<Rows, DictError> {
        loop {
            match self.next()? {
                Event::StreamStart | Event::DocumentStart(_) => {}
                Event::SequenceStart(..) => break,
                _ => return Err(refused("the file must be a list of rules")),
            }
        }
        self.list(0, 0)?;
        Ok(self.rows)
    }

    fn next(&mut self) -> Result<Event<'f>, DictError> {
        match self.events.next_event() {
            Some(Ok((event, _))) => Ok(event),
            Some(Err(error)) => Err(parse_error(&error.to_string())),
            None => Err(parse_error("it ends too early")),
        }
    }

    /// Reads the rules of a list that has begun, within the rule `parent` (0: none).
    fn list(&mut self, parent: u64, depth: usize) -> Result<(), DictError> {
        if depth == limits::YAML_NESTING_MAX {
            return Err(refused(&format!("rules lie in each other more than {depth} deep")));
        }
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(()),
                Event::MappingStart(..) => self.rule(parent, depth)?,
                _ => return Err(refused("a rule must be a map")),
            }
        }
    }

    fn rule(&mut self, parent: u64, depth: usize) -> Result<(), DictError> {
        self.last_id += 1;
        let id = self.last_id;
        let mut regexp = None;
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        loop {
            let name = match self.next()? {
                Event::MappingEnd => break,
                Event::Scalar(name, ..) => name,
                _ => return Err(refused("a rule must have names before its colons")),
            };
            let (is_regexp, is_attribute) =
                (*name == self.wanted.regexp, self.wanted.attributes.contains(&*name));
            match self.next()? {
                Event::Scalar(text, ..) if is_regexp => regexp = Some(text),
                Event::Scalar(text, style, ..) if is_attribute => {
                    let is_null = style == ScalarStyle::Plain && matches!(&*text, "" | "~");
                    put_text(&name, &mut keys);
                    put_text(if is_null { "null" } else { &text }, &mut values);
                }
                Event::Scalar(..) => {}
                _ if is_regexp || is_attribute => return Err(refused(&format!("`{name}` must be a text"))),
                Event::SequenceStart(..) => self.list(id, depth + 1)?,
                Event::MappingStart(..) => self.pass_map()?,
                _ => return Err(refused("aliases are not read")),
            }
        }
        let regexp =
            regexp.ok_or_else(|| refused(&format!("a rule must contain `{}`", self.wanted.regexp)))?;
        self.rows.column(0).push_fixed(&id.to_le_bytes());
        self.rows.column(1).push_fixed(&parent.to_le_bytes());
        self.rows.column(2).push_text(regexp.as_bytes());
        self.rows.column(3).push_items(&keys);
        self.rows.column(4).push_items(&values);
        Ok(())
    }

    /// Skips to the end of a map that has begun and is no attribute's.
    fn pass_map(&mut self) -> Result<(), DictError> {
        let mut depth = 1usize;
        while depth > 0 {
            match self.next()? {
                Event::MappingStart(..) | Event::SequenceStart(..) => depth += 1,
                Event::MappingEnd | Event::SequenceEnd => depth -= 1,
                _ => {}
            }
        }
        Ok(())
    }
}

fn put_text(text: &str, items: &mut Vec<u8>) {
    put(&DataType::String, &Raw::Text(text.as_bytes()), items);
}

fn parse_error(what: &str) -> DictError {
    DictError::new(Code::CannotParseYaml, format!("Failed to parse YAML: {what}"))
}

fn refused(what: &str) -> DictError {
    DictError::new(Code::InvalidConfigParameter, what)
}
