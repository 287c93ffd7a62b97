//! Composite values as text: `[1,2]`, `['a','b\'c']`, `{'a':1}`, `(1,'a')`, `[NULL]`. JSON is read, too.

mod parse;
mod print;

pub(crate) use parse::{Nulls, parse};
pub(crate) use print::print;

/// How strings are quoted and NULL is spelled inside of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Single quotes and backslashes, NULL.
    Quoted,
    /// Double quotes, null.
    Json,
    /// The form of `Quoted`, with calls of functions for what SQL has no literals: `map('a',1)`, `tuple(1)`.
    Calls,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::DictError;
    use crate::row::cells::Raw;
    use crate::row::value;
    use crate::types::DataType;

    fn printed(data_type: &str, text: &str, style: Style) -> Result<String, DictError> {
        printed_of(data_type, text, style, Nulls::Refused)
    }

    fn printed_of(data_type: &str, text: &str, style: Style, nulls: Nulls) -> Result<String, DictError> {
        let data_type = DataType::parse(data_type).unwrap();
        let bytes = parse(&data_type, text, nulls)?;
        assert!(value::are_items(data_type.item(), &bytes));
        let mut out = String::new();
        print(&data_type, &Raw::Items(&bytes), style, &mut out);
        Ok(out)
    }

    #[test]
    fn arrays_go_there_and_back() {
        for (data_type, text, json) in [
            ("Array(UInt8)", "[]", "[]"),
            ("Array(UInt8)", "[1,2,255]", "[1,2,255]"),
            ("Array(String)", r"['a','it\'s','\\','\t','é','']", r#"["a","it's","\\","\t","é",""]"#),
            ("Array(Nullable(String))", "[NULL,'NULL']", r#"[null,"NULL"]"#),
            ("Array(Array(Nullable(Int16)))", "[[],[NULL,-1],[3]]", "[[],[null,-1],[3]]"),
            ("Array(Date)", "['2024-02-29']", r#"["2024-02-29"]"#),
            ("Array(DateTime64(2, 'UTC'))", "['2024-02-29 01:02:03.40']", r#"["2024-02-29 01:02:03.40"]"#),
            ("Array(IPv4)", "['1.2.3.4']", r#"["1.2.3.4"]"#),
            ("Array(Bool)", "[true,false]", "[true,false]"),
            ("Array(Float64)", "[1.5,nan]", "[1.5,null]"),
            ("Array(Decimal(60, 2))", "[1.25]", "[1.25]"),
            ("Map(String, UInt8)", "{}", "{}"),
            ("Map(String, UInt8)", r"{'b':1,'it\'s':2,'b':3}", r#"{"b":1,"it's":2,"b":3}"#),
            ("Map(UInt8, Nullable(String))", "{1:NULL,2:'a:b'}", r#"{"1":null,"2":"a:b"}"#),
            ("Map(Date, Array(Bool))", "{'2024-02-29':[true]}", r#"{"2024-02-29":[true]}"#),
            ("Map(IPv6, Bool)", "{'::1':true}", r#"{"::1":true}"#),
            ("Map(Array(String), UInt8)", "{['a','b']:1,[]:2}", r#"{"['a','b']":1,"[]":2}"#),
            ("Map(Map(UInt8, UInt8), UInt8)", "{{1:2}:3}", r#"{"{1:2}":3}"#),
            ("Array(Map(String, Map(String, UInt8)))", "[{'a':{'b':1}},{}]", r#"[{"a":{"b":1}},{}]"#),
            ("Array(Tuple(UInt8, Nullable(String)))", "[(1,'a'),(2,NULL)]", r#"[[1,"a"],[2,null]]"#),
            ("Array(Tuple(UInt8))", "[(1),(2)]", "[[1],[2]]"),
            (
                "Nested(a UInt8, `b\"c` Tuple(Date, Bool))",
                "[(1,('2024-02-29',true))]",
                r#"[{"a":1,"b\"c":["2024-02-29",true]}]"#,
            ),
        ] {
            assert_eq!(printed(data_type, text, Style::Quoted).unwrap(), text, "{data_type}");
            assert_eq!(printed(data_type, text, Style::Json).unwrap(), json, "{data_type}");
            if !json.contains("null]") {
                assert_eq!(printed(data_type, json, Style::Quoted).unwrap(), text, "{data_type}");
            }
        }
        assert_eq!(printed("Array(UInt8)", " [ 1 , 2 ] ", Style::Quoted).unwrap(), "[1,2]");
        assert_eq!(printed("Array(String)", r#"["\u00e9"]"#, Style::Quoted).unwrap(), "['é']");
        for (data_type, text, shown) in [
            ("Map(String, UInt8)", r#" { "a" : 1 , 'b':2 } "#, "{'a':1,'b':2}"),
            ("Map(String, Array(String))", r#"{"a":[1,-1.5,true,"x"]}"#, "{'a':['1','-1.5','true','x']}"),
            ("Array(Tuple(UInt8))", "[(1,),( 2 )]", "[(1),(2)]"),
            (
                "Nested(a UInt8, b String, c Nullable(Date))",
                r#"[{"b":"x","z":[1,{"y":")}"},'é'],"a":7},{}]"#,
                "[(7,'x',NULL),(0,'',NULL)]",
            ),
        ] {
            assert_eq!(printed(data_type, text, Style::Quoted).unwrap(), shown, "{data_type}");
        }
        for (data_type, text, called) in [
            ("Map(String, UInt128)", "{'a':1}", "map('a','1')"),
            ("Nested(a UInt8, m Map(UInt8, Date))", "[(1,{})]", "[tuple(1,map())]"),
        ] {
            assert_eq!(printed(data_type, text, Style::Calls).unwrap(), called, "{data_type}");
        }
    }

    #[test]
    fn null_is_a_default_where_that_is_said() {
        for (data_type, text, shown) in [
            ("Array(String)", "[null, 'NULL',NULL]", "['','NULL','']"),
            ("Array(Bool)", "[true,null]", "[true,false]"),
            ("Array(Date32)", "[null]", "['1900-01-01']"),
            ("Array(Array(UInt8))", "[null,[1,null]]", "[[],[1,0]]"),
            ("Array(Nullable(UInt8))", "[null,0]", "[NULL,0]"),
            ("Map(String, UInt8)", r#"{"a":null}"#, "{'a':0}"),
            ("Nested(a UInt8, b String)", r#"[{"a":null,"b":null},null]"#, "[(0,''),(0,'')]"),
        ] {
            assert_eq!(
                printed_of(data_type, text, Style::Quoted, Nulls::Defaults).unwrap(),
                shown,
                "{data_type}"
            );
        }
        let refused = printed_of("Array(UInt8)", "[nul]", Style::Quoted, Nulls::Defaults);
        assert_eq!(refused.unwrap_err().code(), 6);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_value_or_refused(text in r#"[\[\]{}():'",\\NULx0-9 é]{0,24}"#) {
            for data_type in [
                "Array(Nullable(String))",
                "Array(Array(UInt8))",
                "Map(UInt8, Map(String, Nullable(String)))",
                "Nested(x UInt8, N Array(String))",
            ] {
                if let Ok(text) = printed(data_type, &text, Style::Quoted) {
                    proptest::prop_assert_eq!(printed(data_type, &text, Style::Quoted).unwrap(), text);
                }
            }
        }
    }

    #[test]
    fn refuses_what_is_no_array() {
        for (data_type, text) in [
            ("Array(UInt8)", ""),
            ("Array(UInt8)", "["),
            ("Array(UInt8)", "[1"),
            ("Array(UInt8)", "[1,]"),
            ("Array(UInt8)", "[,1]"),
            ("Array(UInt8)", "[1] 2"),
            ("Array(UInt8)", "[256]"),
            ("Array(UInt8)", "[NULL]"),
            ("Array(UInt8)", "[[1]]"),
            ("Array(Array(UInt8))", "[1]"),
            ("Array(String)", "[a]"),
            ("Array(String)", "['a"),
            ("Array(String)", r"['a\"),
            ("Array(String)", r#"["\u00"]"#),
            ("Array(String)", r"['\xff']"),
            ("Map(String, UInt8)", "[]"),
            ("Map(String, UInt8)", "{'a'}"),
            ("Map(String, UInt8)", "{'a':}"),
            ("Map(String, UInt8)", "{'a':1,}"),
            ("Map(String, UInt8)", "{'a':1"),
            ("Map(String, UInt8)", "{'a'=1}"),
            ("Map(String, UInt8)", "{a:1}"),
            ("Map(String, UInt8)", "{NULL:1}"),
            ("Map(String, UInt8)", "{'a':256}"),
            ("Map(String, UInt8)", "{'a':NULL}"),
            ("Map(String, UInt8)", "{'a':1}}"),
            ("Map(Array(UInt8), UInt8)", r#"{"[1":1}"#),
            ("Array(Tuple(UInt8, UInt8))", "[(1)]"),
            ("Array(Tuple(UInt8, UInt8))", "[(1,2,)]"),
            ("Array(Tuple(UInt8, UInt8))", "[(1,2,3)]"),
            ("Array(Tuple(UInt8, UInt8))", "[(1,2]]"),
            ("Array(Tuple(UInt8, UInt8))", "[NULL]"),
            ("Nested(a UInt8)", r#"[{a:1}]"#),
            ("Nested(a UInt8)", r#"[{"a":1]"#),
            ("Nested(a UInt8)", r#"[{"z":[}]"#),
        ] {
            assert_eq!(printed(data_type, text, Style::Quoted).unwrap_err().code(), 6, "{data_type} {text}");
        }
    }
}
