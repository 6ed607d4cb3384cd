//! Figures in the scripts' output: CSV without quotes, from which this module computes medians.

use crate::run::Failed;

/// A table with named columns.
pub struct Figures {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The median of several runs, with the smallest and the largest value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Figures {
    /// Reads CSV. An incomplete line, such as the last one of an interrupted run, is left out.
    pub fn parse(csv: &str) -> Result<Self, Failed> {
        let mut lines = csv
            .lines()
            .map(|line| line.split(',').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>());
        let header = lines.next().ok_or_else(|| Failed("the CSV file is empty".to_owned()))?;
        let rows = lines.filter(|row| row.len() == header.len()).collect();
        Ok(Self { header, rows })
    }

    fn place(&self, column: &str) -> Result<usize, Failed> {
        let found = self.header.iter().position(|name| name == column);
        found.ok_or_else(|| Failed(format!("the CSV file has no column {column}")))
    }

    /// The distinct values of a column, in order of appearance.
    pub fn distinct(&self, column: &str) -> Result<Vec<&str>, Failed> {
        let place = self.place(column)?;
        let mut values = Vec::new();
        for row in &self.rows {
            if !values.contains(&row[place].as_str()) {
                values.push(&row[place]);
            }
        }
        Ok(values)
    }

    /// The spread of `value` over the rows whose columns have the values of `keys`. `value` gets
    /// the row's numbers of `columns`. A row without one of the numbers is left out.
    pub fn spread(
        &self,
        keys: &[(&str, &str)],
        columns: &[&str],
        value: impl Fn(&[f64]) -> f64,
    ) -> Result<Option<Spread>, Failed> {
        let keys = keys
            .iter()
            .map(|(column, value)| Ok((self.place(column)?, *value)))
            .collect::<Result<Vec<_>, Failed>>()?;
        let columns =
            columns.iter().map(|column| self.place(column)).collect::<Result<Vec<_>, _>>()?;
        let values = self
            .rows
            .iter()
            .filter(|row| keys.iter().all(|(place, value)| row[*place] == *value))
            .filter_map(|row| {
                let numbers = columns.iter().map(|place| row[*place].parse().ok());
                Some(value(&numbers.collect::<Option<Vec<f64>>>()?))
            });
        Ok(Spread::of(values.collect()))
    }

    /// The spread of one column.
    pub fn column(&self, keys: &[(&str, &str)], column: &str) -> Result<Option<Spread>, Failed> {
        self.spread(keys, &[column], |numbers| numbers[0])
    }
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        Some(Self { median: values[(values.len() - 1) / 2], least, most })
    }
}

/// A cell of a table: the median, with the range if there is more than one value.
pub fn cell(spread: Option<Spread>, decimals: usize) -> String {
    match spread {
        None => String::new(),
        Some(Spread { median, least, most }) if least == most => format!("{median:.decimals$}"),
        Some(Spread { median, least, most }) => {
            format!("{median:.decimals$} ({least:.decimals$} to {most:.decimals$})")
        }
    }
}

/// The ratio of two medians.
pub fn ratio(above: Option<Spread>, below: Option<Spread>) -> Option<f64> {
    Some(above?.median / below?.median)
}

/// The line of a goal in a report.
pub fn goal(what: &str, reached: Option<f64>, met: impl Fn(f64) -> bool, wanted: &str) -> String {
    match reached {
        None => format!("- {what}: not measured (goal: {wanted})\n"),
        Some(value) => {
            let verdict = if met(value) { "met" } else { "not met" };
            format!("- {what}: {value:.2} (goal: {wanted}): {verdict}\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str =
        "size,clients,run,tps\n1GB,1,1,30\n1GB,1,2,10\n1GB,1,3,20\n1GB,2,1,7\n1GB,2,2,\n1GB,2";

    #[test]
    fn runs_become_a_median_with_its_range() {
        let figures = Figures::parse(CSV).expect("CSV");
        assert_eq!(figures.distinct("clients").expect("column"), ["1", "2"]);
        let one = figures.column(&[("size", "1GB"), ("clients", "1")], "tps").expect("column");
        assert_eq!(one, Some(Spread { median: 20.0, least: 10.0, most: 30.0 }));
        assert_eq!(cell(one, 0), "20 (10 to 30)");
        let two = figures.column(&[("clients", "2")], "tps").expect("column");
        assert_eq!(cell(two, 1), "7.0");
        assert_eq!(ratio(one, two).map(|ratio| ratio.round()), Some(3.0));
        assert_eq!(figures.column(&[("clients", "3")], "tps").expect("column"), None);
        assert!(figures.column(&[], "none").is_err());
    }

    #[test]
    fn a_goal_says_whether_it_is_met() {
        assert!(goal("x", Some(3.5), |x| x >= 3.0, "3").ends_with(": met\n"));
        assert!(goal("x", Some(2.5), |x| x >= 3.0, "3").ends_with(": not met\n"));
        assert!(goal("x", None, |_| true, "3").contains("not measured"));
    }
}
