//! The one error of this crate: a ClickHouse error code, its name and a message.

use std::fmt;

/// What ClickHouse would call this failure (`system.errors`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Code {
    /// `UNSUPPORTED_METHOD`
    UnsupportedMethod = 1,
    /// `CANNOT_PARSE_TEXT`
    CannotParseText = 6,
    /// `DUPLICATE_COLUMN`
    DuplicateColumn = 15,
    /// `CANNOT_PARSE_INPUT_ASSERTION_FAILED`
    CannotParseInputAssertionFailed = 27,
    /// `BAD_ARGUMENTS`
    BadArguments = 36,
    /// `CANNOT_PARSE_DATE`
    CannotParseDate = 38,
    /// `CANNOT_PARSE_DATETIME`
    CannotParseDatetime = 41,
    /// `NUMBER_OF_ARGUMENTS_DOESNT_MATCH`
    NumberOfArgumentsDoesntMatch = 42,
    /// `ILLEGAL_TYPE_OF_ARGUMENT`
    IllegalTypeOfArgument = 43,
    /// `NOT_IMPLEMENTED`
    NotImplemented = 48,
    /// `UNKNOWN_TYPE`
    UnknownType = 50,
    /// `TYPE_MISMATCH`
    TypeMismatch = 53,
    /// `SYNTAX_ERROR`
    SyntaxError = 62,
    /// `ARGUMENT_OUT_OF_BOUND`
    ArgumentOutOfBound = 69,
    /// `CANNOT_PARSE_NUMBER`
    CannotParseNumber = 72,
    /// `UNKNOWN_FORMAT`
    UnknownFormat = 73,
    /// `CANNOT_OPEN_FILE`
    CannotOpenFile = 76,
    /// `RECEIVED_ERROR_FROM_REMOTE_IO_SERVER`
    ReceivedErrorFromRemoteIoServer = 86,
    /// `UNKNOWN_SETTING`
    UnknownSetting = 115,
    /// `INCORRECT_DATA`
    IncorrectData = 117,
    /// `CANNOT_READ_ARRAY_FROM_TEXT`
    CannotReadArrayFromText = 130,
    /// `UNKNOWN_ELEMENT_IN_CONFIG`
    UnknownElementInConfig = 137,
    /// `TIMEOUT_EXCEEDED`
    TimeoutExceeded = 159,
    /// `NETWORK_ERROR`
    NetworkError = 210,
    /// `MEMORY_LIMIT_EXCEEDED`
    MemoryLimitExceeded = 241,
    /// `ALL_CONNECTION_TRIES_FAILED`
    AllConnectionTriesFailed = 279,
    /// `LIMIT_EXCEEDED`
    LimitExceeded = 290,
    /// `MONGODB_CANNOT_AUTHENTICATE`
    MongodbCannotAuthenticate = 293,
    /// `CHILD_WAS_NOT_EXITED_NORMALLY`
    ChildWasNotExitedNormally = 302,
    /// `INVALID_CONFIG_PARAMETER`
    InvalidConfigParameter = 318,
    /// `VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE`
    ValueIsOutOfRangeOfDataType = 321,
    /// `SUPPORT_IS_DISABLED`
    SupportIsDisabled = 344,
    /// `CANNOT_PARSE_UUID`
    CannotParseUuid = 376,
    /// `DATA_TYPE_CANNOT_HAVE_ARGUMENTS`
    DataTypeCannotHaveArguments = 378,
    /// `CANNOT_PARSE_BOOL`
    CannotParseBool = 467,
    /// `PATH_ACCESS_DENIED`
    PathAccessDenied = 481,
    /// `DICTIONARY_ACCESS_DENIED`
    DictionaryAccessDenied = 482,
    /// `TOO_MANY_REDIRECTS`
    TooManyRedirects = 483,
    /// `INTERNAL_REDIS_ERROR`
    InternalRedisError = 484,
    /// `INCORRECT_DICTIONARY_DEFINITION`
    IncorrectDictionaryDefinition = 489,
    /// `CACHE_DICTIONARY_UPDATE_FAIL`
    CacheDictionaryUpdateFail = 510,
    /// `CANNOT_PARSE_YAML`
    CannotParseYaml = 585,
    /// `POSTGRESQL_CONNECTION_FAILURE`
    PostgresqlConnectionFailure = 614,
    /// `SQLITE_ENGINE_ERROR`
    SqliteEngineError = 626,
    /// `UNEXPECTED_DATA_AFTER_PARSED_VALUE`
    UnexpectedDataAfterParsedValue = 632,
    /// `NAMED_COLLECTION_DOESNT_EXIST`
    NamedCollectionDoesntExist = 669,
    /// `CANNOT_PARSE_IPV4`
    CannotParseIpv4 = 675,
    /// `CANNOT_PARSE_IPV6`
    CannotParseIpv6 = 676,
    /// `CLUSTER_DOESNT_EXIST`
    ClusterDoesntExist = 701,
    /// `POCO_EXCEPTION`
    PocoException = 1000,
    /// `STD_EXCEPTION`
    StdException = 1001,
}

impl Code {
    /// Whether a source's error with this code concerns a value, unless its `Cause` says otherwise.
    const fn is_of_value(self) -> bool {
        matches!(
            self,
            Code::CannotParseText
                | Code::CannotParseInputAssertionFailed
                | Code::CannotParseDate
                | Code::CannotParseDatetime
                | Code::TypeMismatch
                | Code::ArgumentOutOfBound
                | Code::CannotParseNumber
                | Code::IncorrectData
                | Code::CannotReadArrayFromText
                | Code::LimitExceeded
                | Code::ValueIsOutOfRangeOfDataType
                | Code::CannotParseUuid
                | Code::CannotParseBool
                | Code::UnexpectedDataAfterParsedValue
                | Code::CannotParseIpv4
                | Code::CannotParseIpv6
        )
    }

    /// The name that ClickHouse prints after the message.
    pub const fn name(self) -> &'static str {
        match self {
            Code::UnsupportedMethod => "UNSUPPORTED_METHOD",
            Code::CannotParseText => "CANNOT_PARSE_TEXT",
            Code::DuplicateColumn => "DUPLICATE_COLUMN",
            Code::CannotParseInputAssertionFailed => "CANNOT_PARSE_INPUT_ASSERTION_FAILED",
            Code::BadArguments => "BAD_ARGUMENTS",
            Code::CannotParseDate => "CANNOT_PARSE_DATE",
            Code::CannotParseDatetime => "CANNOT_PARSE_DATETIME",
            Code::NumberOfArgumentsDoesntMatch => "NUMBER_OF_ARGUMENTS_DOESNT_MATCH",
            Code::IllegalTypeOfArgument => "ILLEGAL_TYPE_OF_ARGUMENT",
            Code::NotImplemented => "NOT_IMPLEMENTED",
            Code::UnknownType => "UNKNOWN_TYPE",
            Code::TypeMismatch => "TYPE_MISMATCH",
            Code::SyntaxError => "SYNTAX_ERROR",
            Code::ArgumentOutOfBound => "ARGUMENT_OUT_OF_BOUND",
            Code::CannotParseNumber => "CANNOT_PARSE_NUMBER",
            Code::UnknownFormat => "UNKNOWN_FORMAT",
            Code::CannotOpenFile => "CANNOT_OPEN_FILE",
            Code::ReceivedErrorFromRemoteIoServer => "RECEIVED_ERROR_FROM_REMOTE_IO_SERVER",
            Code::UnknownSetting => "UNKNOWN_SETTING",
            Code::IncorrectData => "INCORRECT_DATA",
            Code::CannotReadArrayFromText => "CANNOT_READ_ARRAY_FROM_TEXT",
            Code::UnknownElementInConfig => "UNKNOWN_ELEMENT_IN_CONFIG",
            Code::TimeoutExceeded => "TIMEOUT_EXCEEDED",
            Code::NetworkError => "NETWORK_ERROR",
            Code::MemoryLimitExceeded => "MEMORY_LIMIT_EXCEEDED",
            Code::AllConnectionTriesFailed => "ALL_CONNECTION_TRIES_FAILED",
            Code::LimitExceeded => "LIMIT_EXCEEDED",
            Code::MongodbCannotAuthenticate => "MONGODB_CANNOT_AUTHENTICATE",
            Code::ChildWasNotExitedNormally => "CHILD_WAS_NOT_EXITED_NORMALLY",
            Code::InvalidConfigParameter => "INVALID_CONFIG_PARAMETER",
            Code::ValueIsOutOfRangeOfDataType => "VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE",
            Code::SupportIsDisabled => "SUPPORT_IS_DISABLED",
            Code::CannotParseUuid => "CANNOT_PARSE_UUID",
            Code::DataTypeCannotHaveArguments => "DATA_TYPE_CANNOT_HAVE_ARGUMENTS",
            Code::CannotParseBool => "CANNOT_PARSE_BOOL",
            Code::PathAccessDenied => "PATH_ACCESS_DENIED",
            Code::DictionaryAccessDenied => "DICTIONARY_ACCESS_DENIED",
            Code::TooManyRedirects => "TOO_MANY_REDIRECTS",
            Code::InternalRedisError => "INTERNAL_REDIS_ERROR",
            Code::IncorrectDictionaryDefinition => "INCORRECT_DICTIONARY_DEFINITION",
            Code::CacheDictionaryUpdateFail => "CACHE_DICTIONARY_UPDATE_FAIL",
            Code::CannotParseYaml => "CANNOT_PARSE_YAML",
            Code::PostgresqlConnectionFailure => "POSTGRESQL_CONNECTION_FAILURE",
            Code::SqliteEngineError => "SQLITE_ENGINE_ERROR",
            Code::UnexpectedDataAfterParsedValue => "UNEXPECTED_DATA_AFTER_PARSED_VALUE",
            Code::NamedCollectionDoesntExist => "NAMED_COLLECTION_DOESNT_EXIST",
            Code::CannotParseIpv4 => "CANNOT_PARSE_IPV4",
            Code::CannotParseIpv6 => "CANNOT_PARSE_IPV6",
            Code::ClusterDoesntExist => "CLUSTER_DOESNT_EXIST",
            Code::PocoException => "POCO_EXCEPTION",
            Code::StdException => "STD_EXCEPTION",
        }
    }
}

/// Letters of a text from outside that an error repeats.
const SHOWN_LETTERS: usize = 128;

/// The beginning of a text from outside, for an error.
pub(crate) fn shown(text: &str) -> &str {
    text.char_indices().nth(SHOWN_LETTERS).map_or(text, |(end, _)| &text[..end])
}

/// An error as ClickHouse words it: `Code: 36. DB::Exception: <message>. (BAD_ARGUMENTS)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DictError {
    kind: Code,
    /// The code and the name of an exception that was passed on.
    passed_on: Option<(i32, &'static str)>,
    message: String,
    cause: Cause,
}

/// What an error of a source means for other requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// The error's code tells.
    Unsaid,
    /// There is no connection: other requests fail, too.
    Outage,
    /// The server had closed the connection: a new one may work.
    LostConnection,
    /// The request itself, or a value of its answer, is at fault: other requests need not fail.
    Request,
}

/// The error for `name` in `clause`, which needs a feature that the program was built without.
pub(crate) fn built_without(clause: &str, name: &str, feature: &str) -> DictError {
    let text =
        format!("{clause}: {name} is not there, for the program was built without the feature `{feature}`");
    DictError::new(Code::SupportIsDisabled, text)
}

/// The error for a source or a layout of ClickHouse that Granary does not have.
pub(crate) fn only_in_clickhouse(clause: &str, name: &str, allowed: &str) -> DictError {
    let text = format!("{clause}: Granary does not have ClickHouse's {name}; allowed are {allowed}");
    DictError::new(Code::NotImplemented, text)
}

impl DictError {
    /// `message` is a sentence without its full stop.
    pub fn new(kind: Code, message: impl Into<String>) -> Self {
        Self { kind, passed_on: None, message: message.into(), cause: Cause::Unsaid }
    }
    /// An exception of a query to the server's own tables, which keeps its code and its name.
    pub fn passed_on(code: i32, name: &'static str, message: impl Into<String>) -> Self {
        Self { passed_on: Some((code, name)), ..Self::new(Code::IncorrectData, message) }
    }
    /// ClickHouse's error number.
    pub fn code(&self) -> i32 {
        self.passed_on.map_or(self.kind as i32, |(code, _)| code)
    }
    /// The number as an enum; of an exception that was passed on, `IncorrectData`.
    pub fn kind(&self) -> Code {
        self.kind
    }
    /// ClickHouse's error name, such as `BAD_ARGUMENTS`.
    pub fn name(&self) -> &'static str {
        self.passed_on.map_or(self.kind.name(), |(_, name)| name)
    }
    /// The message alone.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether a source's server had closed the connection: a new one may work.
    pub(crate) fn is_lost_connection(&self) -> bool {
        self.cause == Cause::LostConnection
    }
    /// Notes in an error whether a source's server had closed the connection.
    pub(crate) fn of_lost_connection(self, is_lost_connection: bool) -> Self {
        if is_lost_connection { Self { cause: Cause::LostConnection, ..self } } else { self }
    }

    /// Whether the error concerns the request, or a value of its answer: other requests may succeed.
    pub(crate) fn is_of_request(&self) -> bool {
        match self.cause {
            Cause::Unsaid => self.kind.is_of_value(),
            Cause::Request => true,
            Cause::Outage | Cause::LostConnection => false,
        }
    }
    /// Notes in an error whether it concerns the request.
    pub(crate) fn of_request(self, is_of_request: bool) -> Self {
        if is_of_request { Self { cause: Cause::Request, ..self } } else { self }
    }
    /// Notes in an error that there is no connection.
    pub(crate) fn of_outage(self) -> Self {
        Self { cause: Cause::Outage, ..self }
    }
    /// Takes over from `error`, which this error wraps, whether it concerns the request.
    pub(crate) fn for_the_cause_of(self, error: &DictError) -> Self {
        self.of_request(error.is_of_request())
    }

    pub(crate) fn bad_arguments(message: impl Into<String>) -> Self {
        Self::new(Code::BadArguments, message)
    }
    pub(crate) fn syntax(message: impl Into<String>) -> Self {
        Self::new(Code::SyntaxError, message)
    }
    pub(crate) fn definition(message: impl Into<String>) -> Self {
        Self::new(Code::IncorrectDictionaryDefinition, message)
    }
    pub(crate) fn parse_text(message: impl Into<String>) -> Self {
        Self::new(Code::CannotParseText, message)
    }
    /// The same error with `prefix: ` before its message.
    pub(crate) fn within(mut self, prefix: impl fmt::Display) -> Self {
        self.message = format!("{prefix}: {}", self.message);
        self
    }
}

impl fmt::Display for DictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code: {}. DB::Exception: {}. ({})", self.code(), self.message, self.name())
    }
}

impl std::error::Error for DictError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_clickhouse_prints_it() {
        let error = DictError::bad_arguments("no such attribute").within("Dictionary d");
        assert_eq!(
            error.to_string(),
            "Code: 36. DB::Exception: Dictionary d: no such attribute. (BAD_ARGUMENTS)"
        );
        assert_eq!((error.code(), error.name()), (36, "BAD_ARGUMENTS"));
        let error = DictError::passed_on(60, "UNKNOWN_TABLE", "Unknown table t").within("Dictionary d");
        assert_eq!(
            error.to_string(),
            "Code: 60. DB::Exception: Dictionary d: Unknown table t. (UNKNOWN_TABLE)"
        );
    }
}
