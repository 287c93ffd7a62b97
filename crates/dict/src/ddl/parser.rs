//! The statement's clauses, in any order.

use super::tokens::Tokens;
use super::{CreateDictionary, CreateMode, columns};

use crate::config::{Layout, Node, Value};
use crate::definition::{Attribute, Definition, Lifetime};
use crate::error::{Code, DictError};
use crate::limits;
use crate::lookup_key::{self, RangeNames};
use crate::source::{CURRENT_DATABASE, SourceConfig};
use crate::structure;
use crate::types::{DataType, text_to_fixed};
use sqlparser::tokenizer::Token;

const CLAUSES: &str = "PRIMARY KEY, SOURCE(..), LAYOUT(..), RANGE(..), LIFETIME(..), SETTINGS(..), COMMENT '..' or the end of the statement";

/// The clauses read so far.
#[derive(Default)]
struct Clauses {
    primary_key: Option<Vec<String>>,
    /// Read at the end, so that errors of the layout come first, as in ClickHouse.
    source: Option<Node>,
    layout: Option<Layout>,
    range: Option<RangeNames>,
    lifetime: Option<Lifetime>,
    settings: Option<Vec<(String, String)>>,
    comment: Option<String>,
}

pub(super) fn parse_create(sql: &str) -> Result<CreateDictionary, DictError> {
    let mut tokens = Tokens::new(sql)?;
    let clause = "CREATE DICTIONARY";
    let mut existing = CreateMode::Create;
    if tokens.keyword("CREATE") {
        if tokens.keyword("OR") {
            tokens.expect_keyword("REPLACE", clause)?;
            existing = CreateMode::CreateOrReplace;
        }
    } else {
        tokens
            .expect_keyword("REPLACE", clause)
            .map_err(|_| tokens.unexpected(clause, "CREATE or REPLACE"))?;
        existing = CreateMode::Replace;
    }
    tokens.expect_keyword("DICTIONARY", clause)?;
    if existing == CreateMode::Create && tokens.keyword("IF") {
        tokens.expect_keyword("NOT", clause)?;
        tokens.expect_keyword("EXISTS", clause)?;
        existing = CreateMode::IfNotExists;
    }
    let mut name = tokens.identifier(clause, "the name of the dictionary")?;
    let mut database = None;
    if tokens.take(&Token::Period) {
        database = Some(name);
        name = tokens.identifier(clause, "the name of the dictionary")?;
    }
    if tokens.keyword("ON") {
        tokens.expect_keyword("CLUSTER", clause)?;
        let cluster = tokens.identifier(clause, "the name of a cluster")?;
        return Err(DictError::new(
            Code::ClusterDoesntExist,
            format!("Requested cluster '{cluster}' not found; create the dictionary on each server"),
        ));
    }
    let uuid = if tokens.keyword("UUID") { Some(uuid(&tokens.string("UUID")?)?) } else { None };
    let columns = columns::parse(&mut tokens)?;
    let clauses = Clauses::parse(&mut tokens)?;
    let definition = Definition { uuid, ..clauses.into_definition(database, name, columns)? };
    definition.validate()?;
    Ok(CreateDictionary { existing, definition })
}

impl Clauses {
    fn parse(tokens: &mut Tokens<'_>) -> Result<Clauses, DictError> {
        let mut clauses = Clauses::default();
        loop {
            if tokens.take(&Token::SemiColon) || tokens.peek().is_none() {
                return match tokens.peek() {
                    None => Ok(clauses),
                    Some(_) => Err(tokens.unexpected("CREATE DICTIONARY", "the end of the statement")),
                };
            }
            if tokens.keyword("PRIMARY") {
                tokens.expect_keyword("KEY", "PRIMARY KEY")?;
                set(&mut clauses.primary_key, primary_key(tokens)?, "PRIMARY KEY")?;
            } else if tokens.keyword("SOURCE") {
                set(&mut clauses.source, one_node(tokens, "SOURCE")?, "SOURCE")?;
            } else if tokens.keyword("LAYOUT") {
                let layout = Layout::from_node(&one_node(tokens, "LAYOUT")?)?;
                set(&mut clauses.layout, layout, "LAYOUT")?;
            } else if tokens.keyword("LIFETIME") {
                set(&mut clauses.lifetime, lifetime(tokens)?, "LIFETIME")?;
            } else if tokens.keyword("SETTINGS") {
                set(&mut clauses.settings, settings(tokens)?, "SETTINGS")?;
            } else if tokens.keyword("COMMENT") {
                set(&mut clauses.comment, tokens.string("COMMENT")?, "COMMENT")?;
            } else if tokens.keyword("RANGE") {
                set(&mut clauses.range, range(tokens)?, "RANGE")?;
            } else {
                return Err(tokens.unexpected("CREATE DICTIONARY", CLAUSES));
            }
        }
    }

    fn into_definition(
        self,
        database: Option<String>,
        name: String,
        columns: Vec<Attribute>,
    ) -> Result<Definition, DictError> {
        let missing = |clause: &str| {
            DictError::definition(format!("Dictionary {name} cannot be created: {clause} is missing"))
        };
        let key = self.primary_key.ok_or_else(|| missing("PRIMARY KEY"))?;
        let source = self.source.ok_or_else(|| missing("SOURCE"))?;
        let mut layout = self.layout.ok_or_else(|| missing("LAYOUT"))?;
        let types = key.iter().filter_map(|name| columns.iter().find(|column| column.name == *name));
        layout.fit_key(&types.map(|column| &column.data_type).collect::<Vec<_>>());
        let source = SourceConfig::from_node(&source)?;
        let lifetime = structure::lifetime_or_default(self.lifetime, &layout)?;
        let mut structure = structure::from_columns(columns, &key, layout.key_form)?;
        structure.attributes = lookup_key::bounds_first(structure.attributes, &layout, self.range)?;
        Ok(Definition {
            database,
            name,
            uuid: None,
            structure,
            source,
            layout,
            lifetime,
            comment: self.comment.unwrap_or_default(),
            settings: self.settings.unwrap_or_default(),
        })
    }
}

fn uuid(text: &str) -> Result<[u8; 16], DictError> {
    let raw = text_to_fixed(&DataType::Uuid, text)?;
    Ok(*raw.first_chunk().expect("a UUID has 16 bytes"))
}

fn set<T>(slot: &mut Option<T>, value: T, clause: &str) -> Result<(), DictError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(DictError::syntax(format!("Syntax error: {clause} is given twice"))),
    }
}

/// `a, b` or `(a, b)`.
fn primary_key(tokens: &mut Tokens<'_>) -> Result<Vec<String>, DictError> {
    let clause = "PRIMARY KEY";
    let parenthesised = tokens.take(&Token::LParen);
    let mut names = vec![tokens.identifier(clause, "the name of a column")?];
    while tokens.take(&Token::Comma) {
        names.push(tokens.identifier(clause, "the name of a column")?);
    }
    if parenthesised {
        tokens.expect(&Token::RParen, clause)?;
    }
    Ok(names)
}

/// `(MIN a MAX b)`, `(MAX b MIN a)` or `(n)`, which is MIN 0 MAX n.
fn lifetime(tokens: &mut Tokens<'_>) -> Result<Lifetime, DictError> {
    let clause = "LIFETIME";
    tokens.expect(&Token::LParen, clause)?;
    let lifetime = if tokens.keyword("MIN") {
        let min_seconds = tokens.number(clause)?;
        tokens.expect_keyword("MAX", clause)?;
        Lifetime { min_seconds, max_seconds: tokens.number(clause)? }
    } else if tokens.keyword("MAX") {
        let max_seconds = tokens.number(clause)?;
        tokens.expect_keyword("MIN", clause)?;
        Lifetime { min_seconds: tokens.number(clause)?, max_seconds }
    } else {
        let max_seconds = tokens
            .number(clause)
            .map_err(|_| tokens.unexpected(clause, "MIN a MAX b, or one number of seconds"))?;
        Lifetime { min_seconds: 0, max_seconds }
    };
    tokens.expect(&Token::RParen, clause)?;
    Ok(lifetime)
}

/// `(MIN a MAX b)`, in any order.
fn range(tokens: &mut Tokens<'_>) -> Result<RangeNames, DictError> {
    let clause = "RANGE";
    tokens.expect(&Token::LParen, clause)?;
    let (mut min, mut max) = (None, None);
    while min.is_none() || max.is_none() {
        let (bound, name) = match tokens.keyword("MIN") {
            true => (&mut min, "RANGE: MIN"),
            false => {
                tokens.expect_keyword("MAX", clause)?;
                (&mut max, "RANGE: MAX")
            }
        };
        set(bound, tokens.identifier(clause, "the name of a column")?, name)?;
    }
    tokens.expect(&Token::RParen, clause)?;
    let [min, max] = [min, max].map(Option::unwrap_or_default);
    Ok(RangeNames { min, max })
}

/// `(name = value, ..)`.
fn settings(tokens: &mut Tokens<'_>) -> Result<Vec<(String, String)>, DictError> {
    let clause = "SETTINGS";
    tokens.expect(&Token::LParen, clause)?;
    let mut settings = Vec::new();
    loop {
        let name = tokens.identifier(clause, "the name of a setting")?;
        tokens.expect(&Token::Eq, clause)?;
        settings.push((name, scalar(tokens, clause)?));
        if !tokens.take(&Token::Comma) {
            break;
        }
    }
    tokens.expect(&Token::RParen, clause)?;
    Ok(settings)
}

/// `(NAME(..))` or `(NAME)`: the one element inside SOURCE or LAYOUT.
fn one_node(tokens: &mut Tokens<'_>, clause: &str) -> Result<Node, DictError> {
    tokens.expect(&Token::LParen, clause)?;
    let name = tokens.identifier(clause, "a name")?.to_uppercase();
    let value = match tokens.take(&Token::LParen) {
        true => Value::Group(group(tokens, &format!("{clause}({name})"), 2)?),
        false => Value::Group(Vec::new()),
    };
    tokens.expect(&Token::RParen, clause)?;
    Ok(Node { name, value })
}

/// `NAME value NAME(..) ..)`, after the opening parenthesis.
fn group(tokens: &mut Tokens<'_>, clause: &str, depth: usize) -> Result<Vec<Node>, DictError> {
    if depth > limits::NESTING_MAX {
        return Err(tokens.unexpected(clause, &format!("at most {} nested parentheses", limits::NESTING_MAX)));
    }
    let mut nodes = Vec::new();
    while !tokens.take(&Token::RParen) {
        let name = tokens.identifier(clause, "the name of a parameter, or ')'")?.to_uppercase();
        let value = match tokens.take(&Token::LParen) {
            true => Value::Group(group(tokens, clause, depth + 1)?),
            false => Value::Text(scalar(tokens, &format!("{clause}, parameter {name}"))?),
        };
        nodes.push(Node { name, value });
    }
    Ok(nodes)
}

/// Functions that stand for values: the port of ClickHouse's own protocol, and the dictionary's database, which is
/// known later.
const CALLS: [(&str, &str); 2] = [("tcpPort", "9000"), ("currentDatabase", CURRENT_DATABASE)];

/// Reads a call of one of `CALLS`, which stands for `value`.
fn call(tokens: &mut Tokens<'_>, clause: &str, value: &str) -> Result<String, DictError> {
    tokens.identifier(clause, "a function")?;
    tokens.expect(&Token::LParen, clause)?;
    tokens.expect(&Token::RParen, clause)?;
    Ok(value.to_owned())
}

/// A number, a string or a word.
fn scalar(tokens: &mut Tokens<'_>, clause: &str) -> Result<String, DictError> {
    let sign = if tokens.take(&Token::Minus) { "-" } else { "" };
    let text = match tokens.peek() {
        Some(Token::Number(text, _)) => format!("{sign}{text}"),
        Some(Token::Word(word)) if CALLS.iter().any(|(name, _)| *name == word.value) => {
            let value = CALLS.iter().find(|(name, _)| *name == word.value).map_or("", |(_, value)| value);
            return call(tokens, clause, value);
        }
        Some(Token::SingleQuotedString(text)) if sign.is_empty() => text.clone(),
        Some(Token::Word(word)) if sign.is_empty() => word.value.clone(),
        _ => return Err(tokens.unexpected(clause, "a value: a number, a string or a word")),
    };
    tokens.skip();
    Ok(text)
}
