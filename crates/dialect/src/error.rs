//! Errors as ClickHouse reports them: a code, its name, a message.

use std::fmt;
use std::path::Path;

use datafusion::common::DataFusionError;

use crate::reword;

/// Any error that stops a statement. The codes and names are ClickHouse's, so that scripts that look at them keep
/// working.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// ClickHouse's error code.
    pub code: i32,
    /// ClickHouse's name for the code.
    pub name: &'static str,
    /// The message, for people.
    pub message: String,
}

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! constructors {
    ($($function:ident = $code:literal $name:literal;)*) => {
        impl Error {
            $(
                #[doc = concat!("ClickHouse's ", $name, ".")]
                pub fn $function(message: impl Into<String>) -> Self {
                    Self { code: $code, name: $name, message: message.into() }
                }
            )*
        }
    };
}

constructors! {
    unsupported_method = 1 "UNSUPPORTED_METHOD";
    cannot_parse_text = 6 "CANNOT_PARSE_TEXT";
    there_is_no_column = 8 "THERE_IS_NO_COLUMN";
    not_found_column = 10 "NOT_FOUND_COLUMN_IN_BLOCK";
    cannot_parse_escape_sequence = 25 "CANNOT_PARSE_ESCAPE_SEQUENCE";
    cannot_parse_quoted_string = 26 "CANNOT_PARSE_QUOTED_STRING";
    cannot_parse_input = 27 "CANNOT_PARSE_INPUT_ASSERTION_FAILED";
    incorrect_subquery = 125 "INCORRECT_RESULT_OF_SCALAR_SUBQUERY";
    cannot_read_array = 130 "CANNOT_READ_ARRAY_FROM_TEXT";
    no_parameters_of_aggregate = 133 "AGGREGATE_FUNCTION_DOESNT_ALLOW_PARAMETERS";
    no_parameters = 309 "FUNCTION_CANNOT_HAVE_PARAMETERS";
    invalid_limit_expression = 440 "INVALID_LIMIT_EXPRESSION";
    table_is_dropped = 218 "TABLE_IS_DROPPED";
    cannot_insert_null = 349 "CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN";
    cannot_parse_bool = 467 "CANNOT_PARSE_BOOL";
    attempt_to_read_after_eof = 32 "ATTEMPT_TO_READ_AFTER_EOF";
    bad_arguments = 36 "BAD_ARGUMENTS";
    cannot_parse_date = 38 "CANNOT_PARSE_DATE";
    cannot_parse_datetime = 41 "CANNOT_PARSE_DATETIME";
    wrong_argument_count = 42 "NUMBER_OF_ARGUMENTS_DOESNT_MATCH";
    illegal_type = 43 "ILLEGAL_TYPE_OF_ARGUMENT";
    illegal_column = 44 "ILLEGAL_COLUMN";
    unknown_function = 46 "UNKNOWN_FUNCTION";
    unknown_identifier = 47 "UNKNOWN_IDENTIFIER";
    not_implemented = 48 "NOT_IMPLEMENTED";
    unknown_storage = 56 "UNKNOWN_STORAGE";
    logical_error = 49 "LOGICAL_ERROR";
    incorrect_query = 80 "INCORRECT_QUERY";
    type_mismatch = 53 "TYPE_MISMATCH";
    table_already_exists = 57 "TABLE_ALREADY_EXISTS";
    no_common_type = 386 "NO_COMMON_TYPE";
    duplicate_column = 15 "DUPLICATE_COLUMN";
    no_such_column = 16 "NO_SUCH_COLUMN_IN_TABLE";
    wrong_column_count = 20 "NUMBER_OF_COLUMNS_DOESNT_MATCH";
    unknown_table = 60 "UNKNOWN_TABLE";
    syntax_error = 62 "SYNTAX_ERROR";
    multiple_expressions_for_alias = 179 "MULTIPLE_EXPRESSIONS_FOR_ALIAS";
    file_doesnt_exist = 107 "FILE_DOESNT_EXIST";
    argument_out_of_bound = 69 "ARGUMENT_OUT_OF_BOUND";
    cannot_convert_type = 70 "CANNOT_CONVERT_TYPE";
    cannot_parse_number = 72 "CANNOT_PARSE_NUMBER";
    unknown_format = 73 "UNKNOWN_FORMAT";
    cannot_open_file = 76 "CANNOT_OPEN_FILE";
    unknown_database = 81 "UNKNOWN_DATABASE";
    database_already_exists = 82 "DATABASE_ALREADY_EXISTS";
    cannot_write = 75 "CANNOT_WRITE_TO_FILE_DESCRIPTOR";
    have_dependent_objects = 630 "HAVE_DEPENDENT_OBJECTS";
    broken_pipe = 1003 "BROKEN_PIPE";
    index_out_of_bound = 353 "INDEX_OF_POSITIONAL_ARGUMENT_IS_OUT_OF_RANGE";
    incorrect_data = 117 "INCORRECT_DATA";
    cannot_compile_regexp = 427 "CANNOT_COMPILE_REGEXP";
    unknown_setting = 115 "UNKNOWN_SETTING";
    readonly = 164 "READONLY";
    sampling_not_supported = 141 "SAMPLING_NOT_SUPPORTED";
    illegal_final = 181 "ILLEGAL_FINAL";
    sizes_dont_match = 190 "SIZES_OF_ARRAYS_DONT_MATCH";
    illegal_division = 153 "ILLEGAL_DIVISION";
    cannot_extract_structure = 636 "CANNOT_EXTRACT_TABLE_STRUCTURE";
    session_not_found = 372 "SESSION_NOT_FOUND";
    session_is_locked = 373 "SESSION_IS_LOCKED";
    invalid_session_timeout = 374 "INVALID_SESSION_TIMEOUT";
    decimal_overflow = 407 "DECIMAL_OVERFLOW";
    ambiguous_identifier = 207 "AMBIGUOUS_IDENTIFIER";
    not_an_aggregate = 215 "NOT_AN_AGGREGATE";
    too_deep_ast = 167 "TOO_DEEP_AST";
    too_big_ast = 168 "TOO_BIG_AST";
    setting_constraint_violation = 452 "SETTING_CONSTRAINT_VIOLATION";
    query_is_too_large = 229 "QUERY_IS_TOO_LARGE";
    too_large_string_size = 131 "TOO_LARGE_STRING_SIZE";
    timeout_exceeded = 159 "TIMEOUT_EXCEEDED";
    expected_all_or_distinct = 558 "EXPECTED_ALL_OR_DISTINCT";
    query_was_cancelled = 394 "QUERY_WAS_CANCELLED";
    too_many_queries = 202 "TOO_MANY_SIMULTANEOUS_QUERIES";
    too_slow = 160 "TOO_SLOW";
    memory_limit_exceeded = 241 "MEMORY_LIMIT_EXCEEDED";
    limit_exceeded = 290 "LIMIT_EXCEEDED";
    parameter_out_of_bound = 12 "PARAMETER_OUT_OF_BOUND";
    cannot_parse_uuid = 376 "CANNOT_PARSE_UUID";
    cannot_parse_ipv4 = 675 "CANNOT_PARSE_IPV4";
    cannot_parse_ipv6 = 676 "CANNOT_PARSE_IPV6";
    dictionary_already_exists = 387 "DICTIONARY_ALREADY_EXISTS";
    cannot_get_create_query = 390 "CANNOT_GET_CREATE_TABLE_QUERY";
    checksum_does_not_match = 40 "CHECKSUM_DOESNT_MATCH";
    infinite_loop = 269 "INFINITE_LOOP";
    too_deep_recursion = 306 "TOO_DEEP_RECURSION";
    cannot_decompress = 271 "CANNOT_DECOMPRESS";
    too_many_rows = 396 "TOO_MANY_ROWS_OR_BYTES";
    unknown_query_parameter = 456 "UNKNOWN_QUERY_PARAMETER";
    bad_query_parameter = 457 "BAD_QUERY_PARAMETER";
    cannot_unlink = 458 "CANNOT_UNLINK";
    named_collection_already_exists = 670 "NAMED_COLLECTION_ALREADY_EXISTS";
    table_not_empty = 705 "TABLE_NOT_EMPTY";
    cluster_doesnt_exist = 701 "CLUSTER_DOESNT_EXIST";
    access_denied = 497 "ACCESS_DENIED";
    unknown_role = 511 "UNKNOWN_ROLE";
    authentication_failed = 516 "AUTHENTICATION_FAILED";
    cannot_detach_dictionary_as_table = 520 "CANNOT_DETACH_DICTIONARY_AS_TABLE";
    directory_in_use = 76 "CANNOT_OPEN_FILE";
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Code: {}. DB::Exception: {}. ({})",
            self.code,
            self.message.trim_end_matches('.'),
            self.name
        )
    }
}

impl std::error::Error for Error {}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        DataFusionError::External(Box::new(error))
    }
}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        find_own(&error).unwrap_or_else(|| reword::reworded(&error))
    }
}

impl From<datafusion::arrow::error::ArrowError> for Error {
    fn from(error: datafusion::arrow::error::ArrowError) -> Self {
        DataFusionError::from(error).into()
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Error::broken_pipe("Broken pipe");
        }
        Error::cannot_write(error.to_string())
    }
}

impl Error {
    /// `name` is an alias of two expressions.
    pub fn two_expressions_for_alias(name: &str, one: &dyn fmt::Display, other: &dyn fmt::Display) -> Error {
        Error::multiple_expressions_for_alias(format!(
            "Multiple expressions {one} AS {name} and {other} AS {name} for alias {name}"
        ))
    }

    /// The error with the path of the file it occurred in.
    pub fn at(self, path: &Path) -> Error {
        Error { message: format!("{}: {}", path.display(), self.message), ..self }
    }

    /// Whether the reader of the answer is gone.
    pub fn is_broken_pipe(&self) -> bool {
        self.code == Error::broken_pipe("").code
    }
}

/// An error of ours that passed through DataFusion is returned as it was.
fn find_own(error: &DataFusionError) -> Option<Error> {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = next {
        if let Some(own) = current.downcast_ref::<Error>() {
            return Some(own.clone());
        }
        next = match current.downcast_ref::<DataFusionError>() {
            Some(DataFusionError::Shared(inner)) => Some(inner.as_ref()),
            Some(DataFusionError::External(inner)) => Some(inner.as_ref()),
            Some(DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner)) => {
                Some(inner.as_ref())
            }
            Some(DataFusionError::Collection(all)) => all.first().map(|e| e as _),
            _ => current.source(),
        };
    }
    None
}

impl From<granary_dict::DictError> for Error {
    fn from(error: granary_dict::DictError) -> Self {
        Error { code: error.code(), name: error.name(), message: error.message().to_owned() }
    }
}
