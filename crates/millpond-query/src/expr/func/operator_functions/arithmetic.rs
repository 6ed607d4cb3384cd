//! The functions of arithmetic, of patterns and of other operators: `int4pl`, `namelike` and so on.

use super::super::catalog::{
    ANYNONARRAY, BOOL, BPCHAR, DATE, FLOAT4, FLOAT8, INT2, INT4, INT8, NAME, NUMERIC, Proc, TEXT,
};
use super::of;

/// For types of sides and of a result: operators with the numbers and names of their functions.
macro_rules! functions {
    ($($args:expr => $result:ident: $($symbol:literal $oid:literal $name:literal),*;)*) => {
        &[$($(of($oid, $name, &$args, $result, $symbol),)*)*]
    };
}

pub(in super::super) static ARITHMETIC: &[Proc] = functions! {
    [DATE, DATE] => INT4: "-" 1140 "date_mi";
    [DATE, INT4] => DATE: "-" 1142 "date_mii", "+" 1141 "date_pli";
    [FLOAT4, FLOAT8] => FLOAT8: "/" 280 "float48div", "-" 282 "float48mi", "*" 279 "float48mul",
        "+" 281 "float48pl";
    [FLOAT4, FLOAT4] => FLOAT4: "/" 203 "float4div", "-" 205 "float4mi", "*" 202 "float4mul",
        "+" 204 "float4pl";
    [FLOAT4] => FLOAT4: "-" 206 "float4um", "+" 1913 "float4up";
    [FLOAT8, FLOAT4] => FLOAT8: "/" 284 "float84div", "-" 286 "float84mi", "*" 283 "float84mul",
        "+" 285 "float84pl";
    [FLOAT8, FLOAT8] => FLOAT8: "/" 217 "float8div", "-" 219 "float8mi", "*" 216 "float8mul",
        "+" 218 "float8pl";
    [FLOAT8] => FLOAT8: "-" 220 "float8um", "+" 1914 "float8up";
    [INT2, INT4] => INT4: "/" 172 "int24div", "-" 182 "int24mi", "*" 170 "int24mul",
        "+" 178 "int24pl";
    [INT2, INT8] => INT8: "/" 948 "int28div", "-" 942 "int28mi", "*" 943 "int28mul",
        "+" 841 "int28pl";
    [INT2, INT2] => INT2: "&" 1892 "int2and", "/" 153 "int2div", "-" 180 "int2mi",
        "%" 155 "int2mod", "*" 152 "int2mul", "|" 1893 "int2or", "+" 176 "int2pl",
        "#" 1894 "int2xor";
    [INT2] => INT2: "-" 213 "int2um", "+" 1911 "int2up";
    [INT4, INT2] => INT4: "/" 173 "int42div", "-" 183 "int42mi", "*" 171 "int42mul",
        "+" 179 "int42pl";
    [INT4, INT8] => INT8: "/" 1281 "int48div", "-" 1279 "int48mi", "*" 1280 "int48mul",
        "+" 1278 "int48pl";
    [INT4, INT4] => INT4: "&" 1898 "int4and", "/" 154 "int4div", "-" 181 "int4mi",
        "%" 156 "int4mod", "*" 141 "int4mul", "|" 1899 "int4or", "+" 177 "int4pl",
        "<<" 1902 "int4shl", ">>" 1903 "int4shr", "#" 1900 "int4xor";
    [INT4] => INT4: "-" 212 "int4um", "+" 1912 "int4up";
    [INT8, INT2] => INT8: "/" 840 "int82div", "-" 838 "int82mi", "*" 839 "int82mul",
        "+" 837 "int82pl";
    [INT8, INT4] => INT8: "/" 1277 "int84div", "-" 1275 "int84mi", "*" 1276 "int84mul",
        "+" 1274 "int84pl", "<<" 1908 "int8shl", ">>" 1909 "int8shr";
    [INT8, INT8] => INT8: "&" 1904 "int8and", "/" 466 "int8div", "-" 464 "int8mi",
        "%" 945 "int8mod", "*" 465 "int8mul", "|" 1905 "int8or", "+" 463 "int8pl",
        "#" 1906 "int8xor";
    [INT8] => INT8: "-" 462 "int8um", "+" 1910 "int8up";
    [INT4, DATE] => DATE: "+" 2550 "integer_pl_date";
    [NUMERIC, NUMERIC] => NUMERIC: "+" 1724 "numeric_add", "/" 1727 "numeric_div",
        "%" 1729 "numeric_mod", "*" 1726 "numeric_mul", "-" 1725 "numeric_sub";
};

/// The type of a value that becomes a text depends on more than the value.
pub(in super::super) static TEXTS: &[Proc] = &[
    of(2003, "textanycat", &[TEXT, ANYNONARRAY], TEXT, "||").stable(),
    of(2004, "anytextcat", &[ANYNONARRAY, TEXT], TEXT, "||").stable(),
];

/// The operators that name the order `~<~` are not there, but it is that of the collation "C".
pub(in super::super) static PATTERNS: &[Proc] = functions! {
    [BPCHAR, BPCHAR] => BOOL: ">=" 2177 "bpchar_pattern_ge", ">" 2178 "bpchar_pattern_gt",
        "<=" 2175 "bpchar_pattern_le", "<" 2174 "bpchar_pattern_lt";
    [BPCHAR, TEXT] => BOOL: "~~*" 1660 "bpchariclike", "!~~*" 1661 "bpcharicnlike",
        "~~" 1631 "bpcharlike", "!~~" 1632 "bpcharnlike";
    [NAME, TEXT] => BOOL: "~~*" 1635 "nameiclike", "!~~*" 1636 "nameicnlike",
        "~*" 1240 "nameicregexeq", "!~*" 1241 "nameicregexne", "~~" 1571 "like",
        "~~" 858 "namelike", "!~~" 859 "namenlike", "~" 79 "nameregexeq", "!~" 1252 "nameregexne",
        "!~~" 1572 "notlike";
    [TEXT, TEXT] => BOOL: ">=" 2163 "text_pattern_ge", ">" 2164 "text_pattern_gt",
        "<=" 2161 "text_pattern_le", "<" 2160 "text_pattern_lt", "~~*" 1633 "texticlike",
        "!~~*" 1634 "texticnlike";
};
