//! A definition as SHOW CREATE DICTIONARY prints it.

use crate::config::{HIDDEN, LayoutKind, Node, Value};
use crate::definition::{Attribute, Definition, Hierarchy, Injectivity, Key, KeyColumn, Literal, ObjectId};
use crate::row::ROW_FORMAT_VERSION;
use twox_hash::XxHash3_64;

/// How a statement is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A line for each column and clause, as SHOW CREATE has it.
    Lines,
    /// One line, as `create_table_query` of `system.tables` has it.
    OneLine,
}

impl Form {
    /// Columns in parentheses, as they follow a name.
    pub fn columns(self, columns: &[String]) -> String {
        match self {
            Form::Lines => format!("\n(\n    {}\n)", columns.join(",\n    ")),
            Form::OneLine => format!(" ({})", columns.join(", ")),
        }
    }

    /// The separator between two clauses.
    pub fn between(self) -> char {
        match self {
            Form::Lines => '\n',
            Form::OneLine => ' ',
        }
    }
}

impl Definition {
    /// The CREATE DICTIONARY statement as ClickHouse's SHOW CREATE prints it; the password is `[HIDDEN]`.
    pub fn to_sql(&self) -> String {
        self.to_sql_in(Form::Lines)
    }

    /// The statement of [`to_sql`](Self::to_sql) in another form.
    pub fn to_sql_in(&self, form: Form) -> String {
        self.print(Some(HIDDEN), form)
    }

    /// The statement with the password in it, for storage: `parse_create` reads back an equal definition.
    pub fn to_sql_with_secrets(&self) -> String {
        self.print(None, Form::Lines)
    }

    /// The statement that makes ClickHouse read this dictionary's rows from the dictionary source at `url`, in Native,
    /// which it reads and writes fastest. `credentials` are a user and a password.
    pub fn to_sql_over_http(&self, url: &str, credentials: Option<(&str, &str)>) -> String {
        let mut there = self.clone();
        // Rows arrive with their expressions computed.
        there.structure.attributes.iter_mut().for_each(|attribute| attribute.expression = None);
        let layout = match self.structure.key {
            Key::Simple { .. } => "DIRECT",
            Key::Complex(_) => "COMPLEX_KEY_DIRECT",
        };
        let credentials = credentials.map_or(String::new(), |(user, password)| {
            format!(" CREDENTIALS(USER {} PASSWORD {})", quote(user), quote(password))
        });
        format!(
            "CREATE DICTIONARY {}{}\nSOURCE(HTTP(URL {} FORMAT 'Native'{credentials}))\nLAYOUT({layout}())\n",
            identifier(&self.name),
            there.columns(Form::Lines),
            quote(&format!("{url}?format=Native"))
        )
    }

    /// A hash of all that decides what a stored row means: columns, their order, types and defaults, and where rows
    /// come from (not as which user). A file with another fingerprint is not this dictionary's.
    pub fn fingerprint(&self) -> u64 {
        let source = self.source.to_anonymous_node();
        let meaning = format!("{}{}\n{}", self.layout.name(), self.columns(Form::Lines), node(&source));
        XxHash3_64::oneshot_with_seed(ROW_FORMAT_VERSION, meaning.as_bytes())
    }

    /// The columns, a line each, and the primary key.
    fn columns(&self, form: Form) -> String {
        let keys = self.structure.key_columns();
        let key_column = |key: &KeyColumn| {
            format!("`{}` {}{}", escape(&key.name, '`'), key.data_type, object_id(key.object_id))
        };
        let key_columns = keys.iter().map(key_column);
        let columns: Vec<String> =
            key_columns.chain(self.structure.attributes.iter().map(attribute)).collect();
        let names: Vec<String> = keys.iter().map(|key| identifier(&key.name)).collect();
        format!("{}{}PRIMARY KEY {}", form.columns(&columns), form.between(), names.join(", "))
    }

    fn print(&self, password: Option<&str>, form: Form) -> String {
        let between = form.between();
        let mut sql = String::from("CREATE DICTIONARY ");
        if let Some(database) = &self.database {
            sql += &identifier(database);
            sql.push('.');
        }
        sql += &identifier(&self.name);
        // The UUID is stored, but not shown.
        if let (None, Some(uuid)) = (password, self.uuid_text()) {
            sql += &format!(" UUID '{uuid}'");
        }
        sql += &self.columns(form);
        sql += &format!("{between}SOURCE({})", node(&self.source.to_node(password)));
        if !matches!(self.layout.kind, LayoutKind::Direct) {
            let lifetime = self.lifetime;
            sql += &format!("{between}LIFETIME(MIN {} MAX {})", lifetime.min_seconds, lifetime.max_seconds);
        }
        sql += &format!("{between}LAYOUT({})", node(&self.layout.to_node()));
        if let [min, max] = self.bounds() {
            sql += &format!("{between}RANGE(MIN {} MAX {})", identifier(&min.name), identifier(&max.name));
        }
        if !self.settings.is_empty() {
            let settings: Vec<String> = self
                .settings
                .iter()
                .map(|(name, value)| format!("{} = {}", identifier(name), scalar(value)))
                .collect();
            sql += &format!("{between}SETTINGS({})", settings.join(", "));
        }
        if !self.comment.is_empty() {
            sql += &format!("{between}COMMENT {}", quote(&self.comment));
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
    text + object_id(attribute.object_id)
}

fn object_id(object_id: ObjectId) -> &'static str {
    match object_id {
        ObjectId::No => "",
        ObjectId::Yes => " IS_OBJECT_ID",
    }
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

/// A string in its quotes.
pub fn quote(text: &str) -> String {
    format!("'{}'", escape(text, '\''))
}

/// A name, in quotes unless it is a plain word; IF would be read as IF NOT EXISTS.
pub fn identifier(name: &str) -> String {
    let plain = !name.eq_ignore_ascii_case("if")
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    if plain { name.to_string() } else { format!("`{}`", escape(name, '`')) }
}

/// Escapes a text with backslashes as ClickHouse does.
fn escape(text: &str, quote: char) -> String {
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

#[cfg(test)]
mod tests {
    use crate::parse_create;

    fn fingerprint(sql: &str) -> u64 {
        parse_create(sql).unwrap().definition.fingerprint()
    }

    #[test]
    fn fingerprints_differ_where_rows_would() {
        let sql = "CREATE DICTIONARY d (id UInt64, a UInt8, b UInt8 DEFAULT 1) PRIMARY KEY id \
                   SOURCE(POSTGRESQL(HOST 'h' PORT 1 USER 'u' PASSWORD 'p' DB 'd' TABLE 't')) \
                   LAYOUT(SSD_CACHE(PATH 'p')) LIFETIME(1)";
        let own = fingerprint(sql);
        for (from, to) in [
            ("a UInt8", "a Int8"),
            ("a UInt8", "c UInt8"),
            ("a UInt8, b UInt8 DEFAULT 1", "b UInt8 DEFAULT 1, a UInt8"),
            ("DEFAULT 1", "DEFAULT 2"),
            ("DEFAULT 1", "EXPRESSION x"),
            ("TABLE 't'", "TABLE 's'"),
            ("TABLE 't'", "TABLE 't' WHERE 'x'"),
            ("HOST 'h'", "HOST 'g'"),
        ] {
            assert!(sql.contains(from));
            assert_ne!(fingerprint(&sql.replace(from, to)), own, "{to}");
        }
        for (from, to) in [
            ("USER 'u'", "USER 'v'"),
            ("PASSWORD 'p'", "PASSWORD 'q'"),
            ("LIFETIME(1)", "LIFETIME(2)"),
            ("LIFETIME(1)", "LIFETIME(1) COMMENT 'c'"),
            ("DICTIONARY d", "DICTIONARY other.e"),
        ] {
            assert_eq!(fingerprint(&sql.replace(from, to)), own, "{to}");
        }
    }

    #[test]
    fn who_asks_does_not_matter() {
        let of = |source: &str| {
            fingerprint(&format!(
                "CREATE DICTIONARY d (id UInt64, a UInt8) PRIMARY KEY id SOURCE({source}) LAYOUT(DIRECT())"
            ))
        };
        for (source, from, to, is_same) in [
            ("MYSQL(USER 'u' PASSWORD 'p' TABLE 't')", "PASSWORD 'p'", "", true),
            ("MYSQL(USER 'u' PASSWORD 'p' TABLE 't')", "'u'", "'v'", true),
            ("MYSQL(USER 'u' PASSWORD 'p' TABLE 't')", "'t'", "'s'", false),
            ("CLICKHOUSE(USER 'u' TABLE 't')", "'u'", "'v'", true),
            ("CLICKHOUSE(USER 'u' TABLE 't')", "USER 'u'", "DB 'u'", false),
            ("REDIS(PASSWORD 'p')", "'p'", "'q'", true),
            ("REDIS(PASSWORD 'p')", "PASSWORD 'p'", "DB_INDEX 1", false),
            ("MONGODB(HOST 'h' USER 'u' PASSWORD 'p' DB 'd' COLLECTION 'c')", "PASSWORD 'p'", "", true),
            ("MONGODB(HOST 'h' USER 'u' DB 'd' COLLECTION 'c')", "'c'", "'c' OPTIONS 'tls=true'", true),
            ("MONGODB(HOST 'h' USER 'u' DB 'd' COLLECTION 'c')", "'c'", "'b'", false),
            ("MONGODB(URI 'mongodb://u:p@h/d' COLLECTION 'c')", "u:p@", "", true),
            ("MONGODB(URI 'mongodb://u:p@h/d' COLLECTION 'c')", "h/d", "h/e", false),
            ("HTTP(URL 'http://h' FORMAT CSV HEADERS(HEADER(NAME 'n' VALUE 'v')))", "'v'", "'w'", true),
            ("HTTP(URL 'http://h' FORMAT CSV CREDENTIALS(USER 'u'))", "CREDENTIALS(USER 'u')", "", true),
            ("HTTP(URL 'http://h' FORMAT CSV)", "http://h", "http://i", false),
        ] {
            assert!(source.contains(from));
            assert_eq!(of(source) == of(&source.replace(from, to)), is_same, "{source}: {to}");
        }
    }
}
