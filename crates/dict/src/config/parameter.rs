//! What a parameter is: its names, its type, its default, and how it is printed.

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

/// What a value is, and which values there are. Texts are kept in the form in which they are printed.
#[derive(Clone, Copy)]
pub(crate) enum ValueType {
    Text,
    /// A whole number in `[low, high]`.
    Number(u64, u64),
    /// 0 or 1, false or true.
    Flag,
    /// A text of which the function makes the one that is kept.
    Read(ReadText),
    /// Parameters in parentheses.
    Group(&'static Parameters),
    /// A list of groups of one name, the only one of its parameters.
    List(&'static Parameters),
    /// A group that may be given several times.
    Groups(&'static Parameters),
}

/// Makes the text that is kept of one that was written; it is given the names of the source and of the parameter.
pub(crate) type ReadText = fn(&str, &str, &str) -> Result<String, DictError>;

/// The value of a parameter that is not given.
#[derive(Clone, Copy)]
pub(crate) enum DefaultValue {
    /// It has none.
    Absent,
    Text(&'static str),
    /// It has to be given.
    Required,
    /// The value of the parameter of the same name around the group.
    Outside,
}

/// When a parameter is printed that has a value.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Printed {
    Always,
    /// If somebody wrote it.
    IfWritten,
    UnlessDefault,
}

/// What SHOW CREATE shows of a value.
#[derive(Clone, Copy)]
pub(crate) enum Secrecy {
    Public,
    Secret,
    /// What the function makes of it and of what stands in place of secrets.
    Partial(fn(&str, &str) -> String),
}

/// What a value says of which rows a source has.
#[derive(Clone, Copy)]
pub(crate) enum Identity {
    /// Other rows than with another value.
    Value,
    /// Nothing: it says as whom or how the source is asked.
    Nothing,
    /// What the function makes of it.
    Partial(fn(&str) -> String),
}

impl Parameter {
    /// The value says nothing of which rows a source has, and stands there as an empty text.
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

    /// Whether it goes by this name.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.synonym == Some(name)
    }

    pub fn may_repeat(&self) -> bool {
        matches!(self.value_type, ValueType::Groups(_))
    }

    /// The parameters in it.
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
    /// The parameters that say something here, in the groups that sources share.
    pub groups: &'static [&'static [Parameter]],
    /// ClickHouse's that change nothing here, or nothing of a cache: accepted and dropped, so that its
    /// definitions can be taken as they are.
    pub ignored: &'static [&'static str],
    /// ClickHouse's that would change what is read, and what to do instead.
    pub refused: &'static [(&'static str, &'static str)],
}

impl Parameters {
    const NONE: Parameters = Parameters::of(&[]);

    /// These, of which none is ignored or refused.
    pub const fn of(groups: &'static [&'static [Parameter]]) -> Parameters {
        Parameters { groups, ignored: &[], refused: &[] }
    }

    pub fn all(&self) -> impl Iterator<Item = &'static Parameter> + use<> {
        self.groups.iter().flat_map(|group| group.iter())
    }

    /// The one that there is.
    pub fn only(&self) -> &'static Parameter {
        self.all().next().expect("a list has items of one name")
    }

    /// The one of this name, or with this synonym.
    pub fn find(&self, name: &str) -> Option<&'static Parameter> {
        self.all().find(|parameter| parameter.is_called(name))
    }
}
