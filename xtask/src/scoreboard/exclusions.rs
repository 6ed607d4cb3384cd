//! Which statements the scoreboard leaves out, and why: the rules of `exclusions.txt`.

/// The rules.
pub struct Exclusions(Vec<Rule>);

struct Rule {
    /// `None`: the statement runs, whatever later rules say.
    reason: Option<&'static str>,
    pattern: Vec<&'static str>,
}

const RULES: &str = include_str!("exclusions.txt");
/// The reason of patterns that leave nothing out.
const RUNS: &str = "runs: never left out";

impl Exclusions {
    pub fn new() -> Self {
        Self::of(RULES)
    }

    fn of(text: &'static str) -> Self {
        let mut reason = None;
        let mut rules = Vec::new();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line.strip_prefix("= ") {
                Some(name) => reason = Some(name).filter(|name| *name != RUNS),
                None => rules.push(Rule { reason, pattern: line.split(' ').collect() }),
            }
        }
        Exclusions(rules)
    }

    /// Why a statement of these words is left out. `None`: it runs.
    pub fn reason(&self, words: &[String]) -> Option<&'static str> {
        self.0.iter().find(|rule| fits(&rule.pattern, words))?.reason
    }
}

/// Whether the words begin as the pattern says.
fn fits(pattern: &[&str], words: &[String]) -> bool {
    match pattern.split_first() {
        None => true,
        Some((&"...", rest)) => (0..=words.len()).any(|from| fits(rest, &words[from..])),
        Some((alternatives, rest)) => match words.split_first() {
            Some((word, behind)) => is_one_of(word, alternatives) && fits(rest, behind),
            None => false,
        },
    }
}

fn is_one_of(word: &str, alternatives: &str) -> bool {
    match alternatives {
        "_" => true,
        "'" => word.starts_with('\''),
        _ => match alternatives.strip_prefix('!') {
            Some(others) => others.split('|').all(|other| other != word),
            None => {
                alternatives.split('|').any(|alternative| match alternative.strip_prefix('*') {
                    Some(end) if !end.is_empty() => word.ends_with(end),
                    _ => alternative == word,
                })
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::Exclusions;
    use millpond_oracle::words;

    const RULES: &str = "# a comment\n= runs: never left out\ncreate table t (\n\n= tables\n\
                         create table !t\n= literals\n... x '\n= two\na|b ... c\ne *_ops";

    fn reason(statement: &str) -> Option<&'static str> {
        Exclusions::of(RULES).reason(&words(statement))
    }

    #[test]
    fn the_first_pattern_decides() {
        assert_eq!(reason("CREATE TABLE t (x int)"), None);
        assert_eq!(reason("create table u (x int)"), Some("tables"));
        assert_eq!(reason("create table t as x"), None);
        assert_eq!(reason("select x 'y'"), Some("literals"));
        assert_eq!(reason("select 'x' 'y'"), None);
        assert_eq!(reason("b d c"), Some("two"));
        assert_eq!(reason("e int4_ops"), Some("two"));
        assert_eq!(reason("e ops"), None);
        assert_eq!(reason("select b d c"), None);
    }

    #[test]
    fn the_rules_of_the_scoreboard() {
        let reason = |statement: &str| Exclusions::new().reason(&words(statement));
        assert_eq!(reason("create temp table t (x int)"), Some("temporary tables"));
        assert_eq!(reason("insert into t select 1 on conflict do nothing"), Some("ON CONFLICT"));
        assert_eq!(reason("select 1::int4range"), Some("types that Millpond lacks"));
        for runs in [
            "create table t (x int primary key)",
            "alter table t add primary key (x)",
            "insert into t select 1",
            "select point from t where x = 'a'",
            "with q as (insert into t values (1) returning x) select * from q",
        ] {
            assert_eq!(reason(runs), None, "{runs}");
        }
    }
}
