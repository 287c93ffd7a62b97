//! Every function that a query can call; others of DataFusion's are unknown. Names, and whether their case matters, are
//! ClickHouse's; `tests/conformance` has its answers for each.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::error::Error;
use crate::similar::similar;

/// Whether the case of a name matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    Exact,
    Any,
}

/// How a function is implemented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Implementation {
    /// By a function of ours, registered under this name.
    Own,
    /// By a function of dictionaries, which the crate with the dictionaries registers under this name.
    Dictionary,
    /// By a function that reads files, which the crate with the files registers under this name.
    File,
    /// By an equal function of DataFusion.
    DataFusion,
    /// By `crate::rewrite`, which turns the call into another expression.
    Rewritten,
    /// An aggregate that `crate::rewrite` turns into one of DataFusion's. The combinator -If may follow its name.
    Aggregate,
    /// A function over a window.
    Window,
}

struct Group {
    by: Implementation,
    case: Case,
    /// The names, separated by blanks.
    names: &'static str,
}

const GROUPS: &[Group] = &[
    Group {
        by: Implementation::Own,
        case: Case::Exact,
        names: "addDays addHours addMinutes addMonths addQuarters addSeconds addWeeks addYears array \
                arrayAll arrayAvg arrayConcat arrayCount arrayCumSum arrayDistinct arrayElement \
                arrayEnumerate arrayExists arrayFilter arrayFirst arrayFirstIndex arrayFirstOrNull \
                arrayIntersect arrayLast arrayLastIndex arrayLastOrNull arrayMax arrayMin arrayPopBack \
                arrayPopFront arrayProduct arrayPushBack arrayPushFront arrayReverse arrayReverseSort \
                arraySlice arraySort arrayStringConcat arraySum arrayUniq assumeNotNull base64Decode \
                base64Encode bitAnd bitCount bitNot bitOr bitShiftLeft bitShiftRight bitTest bitXor cbrt \
                cityHash64 concatWithSeparator countEqual countMatches divide empty endsWith exp2 \
                extract extractAll formatDateTime formatReadableSize fromUnixTimestamp has hasAll hasAny \
                ifNotFinite ignore indexOf intDiv intDivOrZero intHash32 intHash64 IPv4StringToNum \
                IPv6StringToNum isFinite isInfinite isNaN isValidUTF8 leftPad leftUTF8 lengthUTF8 \
                lowerUTF8 mapContainsKey mapKeys mapValues match materialize minus modulo multiply \
                negate notEmpty plus positionCaseInsensitive rand64 range replaceAll replaceOne \
                replaceRegexpAll replaceRegexpOne rightPad rightUTF8 sleep sleepEachRow splitByChar \
                splitByString startsWith substringUTF8 subtractDays subtractHours subtractMinutes \
                subtractMonths subtractQuarters subtractSeconds subtractWeeks subtractYears toBool \
                toDate toDateTime toDayOfMonth toDayOfWeek toDayOfYear toFixedString toFloat32 \
                toFloat32OrNull toFloat32OrZero toFloat64 toFloat64OrNull toFloat64OrZero toHour toInt16 \
                toInt16OrNull toInt16OrZero toInt32 toInt32OrNull toInt32OrZero toInt64 toInt64OrNull \
                toInt64OrZero toInt8 toInt8OrNull toInt8OrZero toIPv4OrDefault toIPv4OrNull toIPv4OrZero \
                toIPv6OrDefault toIPv6OrNull toIPv6OrZero toISOWeek toISOYear toMinute toMonday toMonth \
                toNullable toQuarter toSecond toStartOfDay toStartOfFifteenMinutes toStartOfFiveMinutes \
                toStartOfHour toStartOfISOYear toStartOfMinute toStartOfMonth toStartOfQuarter \
                toStartOfTenMinutes toStartOfWeek toStartOfYear toString toTimezone toTypeName toUInt16 \
                toUInt16OrNull toUInt16OrZero toUInt32 toUInt32OrNull toUInt32OrZero toUInt64 \
                toUInt64OrNull toUInt64OrZero toUInt8 toUInt8OrNull toUInt8OrZero toUnixTimestamp64Micro \
                toUnixTimestamp64Milli toUnixTimestamp64Nano toUnixTimestamp64Second toUUID \
                toUUIDOrDefault toUUIDOrNull toUUIDOrZero toYear toYYYYMM toYYYYMMDD toYYYYMMDDhhmmss \
                trimBoth trimLeft trimRight tuple tupleElement upperUTF8",
    },
    Group {
        by: Implementation::Dictionary,
        case: Case::Exact,
        names: "dictGet dictGetAll dictGetChildren dictGetDate dictGetDateOrDefault dictGetDateTime \
                dictGetDateTimeOrDefault dictGetDescendants dictGetFloat32 dictGetFloat32OrDefault \
                dictGetFloat64 dictGetFloat64OrDefault dictGetHierarchy dictGetInt16 \
                dictGetInt16OrDefault dictGetInt32 dictGetInt32OrDefault dictGetInt64 \
                dictGetInt64OrDefault dictGetInt8 dictGetInt8OrDefault dictGetIPv4 dictGetIPv4OrDefault \
                dictGetIPv6 dictGetIPv6OrDefault dictGetKeys dictGetOrDefault dictGetOrNull dictGetRoot \
                dictGetString dictGetStringOrDefault dictGetUInt16 dictGetUInt16OrDefault dictGetUInt32 \
                dictGetUInt32OrDefault dictGetUInt64 dictGetUInt64OrDefault dictGetUInt8 \
                dictGetUInt8OrDefault dictGetUUID dictGetUUIDOrDefault dictHas dictIsIn",
    },
    Group { by: Implementation::File, case: Case::Exact, names: "file" },
    Group {
        by: Implementation::Own,
        case: Case::Any,
        names: "abs atan2 ceil concat cos countSubstrings dateDiff exp floor greatest hex hypot least left \
                length locate log log10 log2 lower position pow rand repeat reverse right round sign sin sqrt \
                substring trunc unhex upper",
    },
    Group { by: Implementation::DataFusion, case: Case::Any, names: "coalesce ifNull" },
    Group {
        by: Implementation::Rewritten,
        case: Case::Exact,
        names: "and arrayJoin arrayMap currentDatabase currentUser dateTrunc displayName equals getSetting \
                greater greaterOrEquals hostName identity ilike in isNotNull less lessOrEquals like map multiIf \
                notEquals notILike notIn notLike or serverTimezone toDate32 toDateTime64 toDecimal128 \
                toDecimal256 toDecimal32 toDecimal64 toInt128 toInt256 toIntervalDay toIntervalHour \
                toIntervalMinute toIntervalMonth toIntervalQuarter toIntervalSecond toIntervalWeek \
                toIntervalYear toIPv4 toIPv6 toLowCardinality toStartOfInterval toUInt128 toUnixTimestamp \
                transform xor yesterday",
    },
    Group {
        by: Implementation::Rewritten,
        case: Case::Any,
        names: "CAST connectionId if isNull not now now64 nullIf pi revision timezone today version",
    },
    Group {
        by: Implementation::Aggregate,
        case: Case::Exact,
        names: "any anyLast argMax argMin covarPop covarSamp groupArray groupBitAnd groupBitOr groupBitXor \
                groupUniqArray quantile quantileExactInclusive quantiles quantilesExactInclusive stddevPop \
                stddevSamp uniq uniqCombined uniqCombined64 uniqExact uniqHLL12 varPop varSamp",
    },
    Group { by: Implementation::Aggregate, case: Case::Any, names: "avg corr count max min sum" },
    Group { by: Implementation::Window, case: Case::Exact, names: "denseRank" },
    Group { by: Implementation::Window, case: Case::Any, names: "rank row_number" },
];

/// Aliases of these functions.
const ALIASES: &[(&str, Case, &str)] = &[
    ("any_value", Case::Any, "any"),
    ("array_agg", Case::Any, "groupArray"),
    ("array_to_string", Case::Any, "arrayStringConcat"),
    ("BIT_AND", Case::Any, "groupBitAnd"),
    ("BIT_OR", Case::Any, "groupBitOr"),
    ("BIT_XOR", Case::Any, "groupBitXor"),
    ("CARDINALITY", Case::Any, "length"),
    ("ceiling", Case::Any, "ceil"),
    ("CHAR_LENGTH", Case::Any, "lengthUTF8"),
    ("CHARACTER_LENGTH", Case::Any, "lengthUTF8"),
    ("concat_ws", Case::Any, "concatWithSeparator"),
    ("connection_id", Case::Any, "connectionId"),
    ("COVAR_POP", Case::Any, "covarPop"),
    ("COVAR_SAMP", Case::Any, "covarSamp"),
    ("curdate", Case::Any, "today"),
    ("current_database", Case::Any, "currentDatabase"),
    ("current_date", Case::Any, "today"),
    ("current_timestamp", Case::Any, "now"),
    ("current_user", Case::Any, "currentUser"),
    ("DATABASE", Case::Any, "currentDatabase"),
    ("DATE_DIFF", Case::Exact, "dateDiff"),
    ("date_diff", Case::Exact, "dateDiff"),
    ("DATE_FORMAT", Case::Any, "formatDateTime"),
    ("DATE_TRUNC", Case::Any, "dateTrunc"),
    ("DAY", Case::Any, "toDayOfMonth"),
    ("DAYOFMONTH", Case::Any, "toDayOfMonth"),
    ("DAYOFWEEK", Case::Any, "toDayOfWeek"),
    ("DAYOFYEAR", Case::Any, "toDayOfYear"),
    ("dense_rank", Case::Any, "denseRank"),
    ("first_value", Case::Any, "any"),
    ("FORMAT_BYTES", Case::Any, "formatReadableSize"),
    ("FROM_BASE64", Case::Any, "base64Decode"),
    ("FROM_UNIXTIME", Case::Any, "fromUnixTimestamp"),
    ("hostname", Case::Exact, "hostName"),
    ("HOUR", Case::Any, "toHour"),
    ("instr", Case::Any, "positionCaseInsensitive"),
    ("last_value", Case::Any, "anyLast"),
    ("lcase", Case::Any, "lower"),
    ("ln", Case::Any, "log"),
    ("localtimestamp", Case::Any, "now"),
    ("lpad", Case::Any, "leftPad"),
    ("ltrim", Case::Exact, "trimLeft"),
    ("mapContains", Case::Exact, "mapContainsKey"),
    ("max_by", Case::Any, "argMax"),
    ("median", Case::Exact, "quantile"),
    ("mid", Case::Any, "substring"),
    ("min_by", Case::Any, "argMin"),
    ("MINUTE", Case::Any, "toMinute"),
    ("mod", Case::Any, "modulo"),
    ("MONTH", Case::Any, "toMonth"),
    ("OCTET_LENGTH", Case::Any, "length"),
    ("power", Case::Any, "pow"),
    ("QUARTER", Case::Any, "toQuarter"),
    ("rand32", Case::Exact, "rand"),
    ("REGEXP_MATCHES", Case::Any, "match"),
    ("REGEXP_REPLACE", Case::Any, "replaceRegexpAll"),
    ("replace", Case::Any, "replaceAll"),
    ("rpad", Case::Any, "rightPad"),
    ("rtrim", Case::Exact, "trimRight"),
    ("SCHEMA", Case::Any, "currentDatabase"),
    ("SECOND", Case::Any, "toSecond"),
    ("serverTimeZone", Case::Exact, "serverTimezone"),
    ("session_user", Case::Any, "currentUser"),
    ("STD", Case::Any, "stddevPop"),
    ("STDDEV", Case::Any, "stddevSamp"),
    ("STDDEV_POP", Case::Any, "stddevPop"),
    ("STDDEV_SAMP", Case::Any, "stddevSamp"),
    ("substr", Case::Any, "substring"),
    ("TIMESTAMP_DIFF", Case::Exact, "dateDiff"),
    ("timestamp_diff", Case::Exact, "dateDiff"),
    ("timestampDiff", Case::Exact, "dateDiff"),
    ("timeZone", Case::Any, "timezone"),
    ("TO_BASE64", Case::Any, "base64Encode"),
    ("toStartOfFiveMinute", Case::Exact, "toStartOfFiveMinutes"),
    ("toTimeZone", Case::Exact, "toTimezone"),
    ("trim", Case::Exact, "trimBoth"),
    ("truncate", Case::Any, "trunc"),
    ("ucase", Case::Any, "upper"),
    ("unnest", Case::Any, "arrayJoin"),
    ("user", Case::Any, "currentUser"),
    ("VAR_POP", Case::Any, "varPop"),
    ("VAR_SAMP", Case::Any, "varSamp"),
    ("YEAR", Case::Any, "toYear"),
];

/// A known function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its name in ClickHouse's spelling; for an alias, the name that it stands for.
    pub name: &'static str,
    pub by: Implementation,
}

struct FunctionNames {
    exact: HashMap<&'static str, Known>,
    /// By name in lower case.
    any_case: HashMap<String, Known>,
}

static NAMES: LazyLock<FunctionNames> = LazyLock::new(|| {
    let mut names = FunctionNames { exact: HashMap::new(), any_case: HashMap::new() };
    for group in GROUPS {
        for name in group.names.split_whitespace() {
            names.add(name, group.case, Known { name, by: group.by });
        }
    }
    for (alias, case, name) in ALIASES {
        let known = names.exact.get(name).copied().expect("an alias stands for a function");
        names.add(alias, *case, known);
    }
    names
});

impl FunctionNames {
    fn add(&mut self, name: &'static str, case: Case, known: Known) {
        self.exact.insert(name, known);
        if case == Case::Any {
            self.any_case.insert(name.to_ascii_lowercase(), known);
        }
    }
}

/// The function of a name as written in a query; `None`: there is none.
pub fn find(written: &str) -> Option<Known> {
    let known = NAMES.exact.get(written).copied();
    known.or_else(|| NAMES.any_case.get(&written.to_ascii_lowercase()).copied())
}

/// The aggregate before the combinator -If.
pub fn find_conditional(written: &str) -> Option<Known> {
    find(written.strip_suffix("If")?).filter(|known| known.by == Implementation::Aggregate)
}

/// Whether a name is an aggregate's.
pub fn is_aggregate(name: &str) -> bool {
    find(name).is_some_and(|known| known.by == Implementation::Aggregate)
}

/// The names of the functions that are implemented this way.
pub fn by(by: Implementation) -> impl Iterator<Item = &'static str> {
    GROUPS.iter().filter(move |group| group.by == by).flat_map(|group| group.names.split_whitespace())
}

/// The error of an unknown name: UNKNOWN_FUNCTION, with names that are similar.
pub fn unknown(written: &str) -> Error {
    let near = similar(written, NAMES.exact.keys().copied());
    let hint = near.map_or_else(String::new, |near| format!(". Maybe you meant: {near}"));
    Error::unknown_function(format!("Function with name `{written}` does not exist{hint}"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::functions;
    use crate::plan::planning;
    use datafusion::execution::SessionStateBuilder;
    use datafusion::execution::context::SessionContext;
    use granary_dict::WaitLimit;

    #[test]
    fn names_are_found_as_clickhouse_finds_them() {
        let name = |written: &str| find(written).map(|known| known.name);
        assert_eq!(
            ["toString", "LOWER", "lcase", "Count", "max_by"].map(name),
            [Some("toString"), Some("lower"), Some("lower"), Some("count"), Some("argMax")]
        );
        // Names of DataFusion's, or in the wrong case.
        assert_eq!(["tostring", "strpos", "array_length", "asType", "unnest/x"].map(name), [None; 5]);
        assert_eq!(find_conditional("sumIf").map(|known| known.name), Some("sum"));
        assert!(find_conditional("lowerIf").is_none());
        let message = unknown("toStrin").message;
        assert_eq!(message, "Function with name `toStrin` does not exist. Maybe you meant: ['toString']");
    }

    /// Every name that the table calls ours is registered, and no name is there twice.
    #[test]
    fn the_table_is_what_is_registered() {
        let context =
            SessionContext::new_with_state(planning(SessionStateBuilder::new(), Vec::new()).build());
        functions::register(&context, &WaitLimit::new(|wait| wait())).unwrap();
        let state = context.state();
        let registered = |name: &str| state.scalar_functions().contains_key(name);
        let missing: Vec<&str> = by(Implementation::Own).filter(|name| !registered(name)).collect();
        assert_eq!(missing, [""; 0]);
        let mut seen = HashSet::new();
        let names = GROUPS.iter().flat_map(|group| group.names.split_whitespace());
        let twice: Vec<&str> =
            names.chain(ALIASES.iter().map(|alias| alias.0)).filter(|name| !seen.insert(*name)).collect();
        assert_eq!(twice, [""; 0]);
        // Each registered function can be called by its name, has a name that no query can write, or is one that calls
        // are rewritten to.
        let inner = [
            "asChoice",
            "asCondition",
            "asNumber",
            "asType",
            "current_date",
            "get_field",
            "mapContains",
            "mapOf",
            "nvl",
        ];
        let is_hidden = |name: &str| name.contains('/') || inner.contains(&name) || find(name).is_some();
        let leaked: Vec<&String> = state.scalar_functions().keys().filter(|name| !is_hidden(name)).collect();
        assert!(leaked.is_empty(), "{leaked:?}");
    }
}
