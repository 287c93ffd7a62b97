//! A definition as SHOW CREATE DICTIONARY prints it.

use crate::config::{Node, Storage, Value};
use crate::definition::{Attribute, Definition, Hierarchy, Injectivity, Literal, ObjectId};
use std::fmt::Write;

const HIDDEN: &str = "[HIDDEN]";

impl Definition {
    /// The CREATE DICTIONARY statement as ClickHouse's SHOW CREATE prints it; the password is `[HIDDEN]`.
    pub fn to_sql(&self) -> String {
        self.print(Some(HIDDEN))
    }

    /// The same with the password in it, for storage: `parse_create` reads back this very definition.
    pub fn to_sql_with_secrets(&self) -> String {
        self.print(None)
    }

    fn print(&self, password: Option<&str>) -> String {
        let mut sql = String::from("CREATE DICTIONARY ");
        if let Some(database) = &self.database {
            sql += &identifier(database);
            sql.push('.');
        }
        sql += &identifier(&self.name);
        let keys = self.structure.key_columns();
        let key_columns = keys.iter().map(|key| format!("`{}` {}", escape(&key.name, '`'), key.data_type));
        let columns: Vec<String> = key_columns
            .chain(self.structure.attributes.iter().map(attribute))
            .map(|c| format!("    {c}"))
            .collect();
        write!(sql, "\n(\n{}\n)", columns.join(",\n")).expect("a String takes everything");
        let names: Vec<String> = keys.iter().map(|key| identifier(&key.name)).collect();
        sql += &format!("\nPRIMARY KEY {}", names.join(", "));
        sql += &format!("\nSOURCE({})", node(&self.source.to_node(password)));
        if !matches!(self.layout.storage, Storage::Direct) {
            let lifetime = self.lifetime;
            sql += &format!("\nLIFETIME(MIN {} MAX {})", lifetime.min_seconds, lifetime.max_seconds);
        }
        sql += &format!("\nLAYOUT({})", node(&self.layout.to_node()));
        if !self.settings.is_empty() {
            let settings: Vec<String> = self
                .settings
                .iter()
                .map(|(name, value)| format!("{} = {}", identifier(name), scalar(value)))
                .collect();
            sql += &format!("\nSETTINGS({})", settings.join(", "));
        }
        if !self.comment.is_empty() {
            sql += &format!("\nCOMMENT {}", quote(&self.comment));
        }
        sql
    }
}

fn attribute(attribute: &Attribute) -> String {
    let mut text = format!("`{}` {}", escape(&attribute.name, '`'), attribute.data_type);
    match &attribute.default {
        None => {}
        Some(Literal::Null) => text += " DEFAULT NULL",
        Some(Literal::Bare(bare)) => text += &format!(" DEFAULT {bare}"),
        Some(Literal::Quoted(quoted)) => text += &format!(" DEFAULT {}", quote(quoted)),
    }
    if let Some(expression) = &attribute.expression {
        text += &format!(" EXPRESSION {expression}");
    }
    text += match attribute.hierarchy {
        Hierarchy::Flat => "",
        Hierarchy::Hierarchical => " HIERARCHICAL",
        Hierarchy::Bidirectional => " HIERARCHICAL BIDIRECTIONAL",
    };
    text += match attribute.injectivity {
        Injectivity::Unknown => "",
        Injectivity::Injective => " INJECTIVE",
    };
    text += match attribute.object_id {
        ObjectId::No => "",
        ObjectId::Yes => " IS_OBJECT_ID",
    };
    text
}

fn node(node: &Node) -> String {
    match &node.value {
        Value::Text(text) => format!("{} {}", node.name, scalar(text)),
        Value::Group(nodes) => {
            let parameters: Vec<String> = nodes.iter().map(self::node).collect();
            format!("{}({})", node.name, parameters.join(" "))
        }
    }
}

/// A number as it is, anything else in quotes.
fn scalar(text: &str) -> String {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if (1..=19).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()) {
        text.to_string()
    } else {
        quote(text)
    }
}

fn quote(text: &str) -> String {
    format!("'{}'", escape(text, '\''))
}

fn identifier(name: &str) -> String {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    if plain { name.to_string() } else { format!("`{}`", escape(name, '`')) }
}

/// Backslashes as ClickHouse writes them; a backtick is doubled, which is what the tokenizer reads back.
fn escape(text: &str, quote: char) -> String {
    if quote == '`' {
        return text.replace('`', "``");
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => escaped += "\\\\",
            '\n' => escaped += "\\n",
            '\t' => escaped += "\\t",
            '\r' => escaped += "\\r",
            '\0' => escaped += "\\0",
            c if c == quote => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}
