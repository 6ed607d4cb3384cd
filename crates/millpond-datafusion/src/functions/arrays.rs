//! The catalogs' arrays are text in the form of array literals: `{pg_catalog,public}`.

/// The elements of an array literal; quotes and escapes are undone.
pub fn elements(literal: &str) -> Vec<String> {
    let inner = literal.trim().trim_start_matches(['{', '[']).trim_end_matches(['}', ']']);
    if inner.is_empty() {
        return Vec::new();
    }
    let mut elements = vec![String::new()];
    let (mut quoted, mut escaped) = (false, false);
    for character in inner.chars() {
        let last = elements.len() - 1;
        match character {
            _ if escaped => {
                elements[last].push(character);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ',' if !quoted => elements.push(String::new()),
            _ => elements[last].push(character),
        }
    }
    elements
}

/// An array literal of plain words.
pub fn literal<'a>(elements: impl IntoIterator<Item = &'a str>) -> String {
    let elements: Vec<&str> = elements.into_iter().collect();
    format!("{{{}}}", elements.join(","))
}

#[cfg(test)]
mod tests {
    #[test]
    fn literals_come_apart() {
        assert_eq!(super::elements("{}"), Vec::<String>::new());
        assert_eq!(super::elements("{a,\"b,c\",\"d\\\"e\"}"), ["a", "b,c", "d\"e"]);
        assert_eq!(super::literal(["a", "b"]), "{a,b}");
    }
}
