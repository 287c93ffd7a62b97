//! A source's parameter: its names, its type, its default, and how it is printed.

use crate::error::DictError;

/// One parameter of a source.
#[derive(Clone, Copy)]
pub(crate) struct Parameter {
    /// The name that is printed.
    pub name: &'static str,
    /// ClickHouse's other name of it.
    pub synonym: Option<&'static str>,
    pub value_type: ValueType,
    pub default: DefaultValue,
    pub printed: Printed,
    pub secrecy: Secrecy,
    pub identity: Identity,
}

/// The type and range of a value. Texts are kept in the form in which they are printed.
#[derive(Clone, Copy)]
pub(crate) enum ValueType {
    Text,
    /// A whole number in `[low, high]`.
    Number(u64, u64),
    /// 0 or 1, false or true.
    Flag,
    /// A text that the function parses into the one that is kept.
    Read(ReadText),
    /// Parameters in parentheses.
    Group(&'static Parameters),
    /// A list of groups, all of the one name in its parameters.
    List(&'static Parameters),
    /// A group that may be given several times.
    Groups(&'static Parameters),
}

/// Parses a written text into the one that is kept, given the names of the source and of the parameter, and the text.
pub(crate) type ReadText = fn(&str, &str, &str) -> Result<String, DictError>;

/// The value of a parameter that is not given.
#[derive(Clone, Copy)]
pub(crate) enum DefaultValue {
    /// There is no default.
    Absent,
    Text(&'static str),
    /// The parameter has to be given.
    Required,
    /// The value of the parameter of the same name around the group.
    Outside,
}

/// When a parameter with a value is printed.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Printed {
    Always,
    /// If it was written.
    IfWritten,
    UnlessDefault,
}

/// What SHOW CREATE shows of a value.
#[derive(Clone, Copy)]
pub(crate) enum Secrecy {
    Public,
    Secret,
    /// The text that the function makes of the value and of the placeholder for secrets.
    Partial(fn(&str, &str) -> String),
}

/// How a value affects which rows a source has.
#[derive(Clone, Copy)]
pub(crate) enum Identity {
    /// Another value means other rows.
    Value,
    /// Not at all: it says as which user or how the source is asked.
    Nothing,
    /// By the text that the function makes of the value.
    Partial(fn(&str) -> String),
}

impl Parameter {
    /// The value does not affect which rows a source has; its identity is an empty text.
    pub const fn emptied(self) -> Parameter {
        self.anonymous(Identity::Partial(|_| String::new()))
    }

    pub const fn new(name: &'static str, value_type: ValueType) -> Parameter {
        Parameter {
            name,
            synonym: None,
            value_type,
            default: DefaultValue::Absent,
            printed: Printed::UnlessDefault,
            secrecy: Secrecy::Public,
            identity: Identity::Value,
        }
    }

    pub const fn text(name: &'static str) -> Parameter {
        Parameter::new(name, ValueType::Text)
    }

    pub const fn number(name: &'static str, low: u64, high: u64) -> Parameter {
        Parameter::new(name, ValueType::Number(low, high))
    }

    pub const fn flag(name: &'static str) -> Parameter {
        Parameter::new(name, ValueType::Flag).or("0")
    }

    pub const fn port(default: &'static str) -> Parameter {
        Parameter::number("PORT", 1, u16::MAX as u64).or(default)
    }

    pub const fn also(self, synonym: &'static str) -> Parameter {
        Parameter { synonym: Some(synonym), ..self }
    }

    pub const fn or(self, default: &'static str) -> Parameter {
        Parameter { default: DefaultValue::Text(default), ..self }
    }

    pub const fn or_outside(self) -> Parameter {
        Parameter { default: DefaultValue::Outside, ..self }
    }

    pub const fn required(self) -> Parameter {
        Parameter { default: DefaultValue::Required, ..self }
    }

    pub const fn printed(self, printed: Printed) -> Parameter {
        Parameter { printed, ..self }
    }

    pub const fn secret(self) -> Parameter {
        Parameter { secrecy: Secrecy::Secret, ..self.anonymous(Identity::Nothing) }
    }

    pub const fn shown(self, shown: fn(&str, &str) -> String) -> Parameter {
        Parameter { secrecy: Secrecy::Partial(shown), ..self }
    }

    pub const fn anonymous(self, identity: Identity) -> Parameter {
        Parameter { identity, ..self }
    }

    /// Whether `name` is its name or synonym.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.synonym == Some(name)
    }

    pub fn may_repeat(&self) -> bool {
        matches!(self.value_type, ValueType::Groups(_))
    }

    /// The parameters of the group or list.
    pub fn inner(&self) -> &'static Parameters {
        match self.value_type {
            ValueType::Group(inner) | ValueType::List(inner) | ValueType::Groups(inner) => inner,
            _ => &Parameters::NONE,
        }
    }
}

/// The parameters of a source or of a group in it, in the order in which they are printed.
#[derive(Clone, Copy)]
pub(crate) struct Parameters {
    /// Parameters that have an effect here, in the groups that sources share.
    pub groups: &'static [&'static [Parameter]],
    /// ClickHouse's parameters without effect here or on a cache: accepted and dropped, so that its definitions can be
    /// taken as they are.
    pub ignored: &'static [&'static str],
    /// ClickHouse's parameters that would change what is read, each with what to do instead.
    pub refused: &'static [(&'static str, &'static str)],
}

impl Parameters {
    const NONE: Parameters = Parameters::of(&[]);

    /// Parameters without ignored or refused ones.
    pub const fn of(groups: &'static [&'static [Parameter]]) -> Parameters {
        Parameters { groups, ignored: &[], refused: &[] }
    }

    pub fn all(&self) -> impl Iterator<Item = &'static Parameter> + use<> {
        self.groups.iter().flat_map(|group| group.iter())
    }

    /// The only parameter, of a list.
    pub fn only(&self) -> &'static Parameter {
        self.all().next().expect("a list has items of one name")
    }

    /// The parameter with this name or synonym.
    pub fn find(&self, name: &str) -> Option<&'static Parameter> {
        self.all().find(|parameter| parameter.is_called(name))
    }
}
