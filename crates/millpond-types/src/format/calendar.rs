//! The calendar: days and microseconds since 2000-01-01 to years, months and days and back
//! (proleptic Gregorian, as PostgreSQL).

/// Microseconds of a day.
pub const USECS_PER_DAY: i64 = 86_400_000_000;
/// Days from 0000-03-01 to 2000-01-01.
const EPOCH_SHIFT: i64 = 730_425;
const DAYS_PER_ERA: i64 = 146_097;

/// A moment taken apart. Years are astronomical: 0 is 1 BC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Year; 0 is 1 BC.
    pub year: i32,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    /// Microseconds since midnight.
    pub usecs: i64,
}

/// The calendar's day of a date (days since 2000-01-01).
pub fn civil_of_date(date: i32) -> Civil {
    // Years that begin in March end with the leap day; an era has 400 of them.
    let days = i64::from(date) + EPOCH_SHIFT;
    let era = days.div_euclid(DAYS_PER_ERA);
    let day_of_era = days.rem_euclid(DAYS_PER_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Civil { year: year as i32, month: month as u32, day: day as u32, usecs: 0 }
}

/// The moment of a time stamp (microseconds since 2000-01-01).
pub fn civil_of_timestamp(timestamp: i64) -> Civil {
    let date = timestamp.div_euclid(USECS_PER_DAY);
    Civil { usecs: timestamp.rem_euclid(USECS_PER_DAY), ..civil_of_date(date as i32) }
}

/// Days since 2000-01-01; `None` when there is no such day in the calendar.
pub fn date_of_civil(year: i64, month: u32, day: u32) -> Option<i64> {
    if !(1..=12).contains(&month) || day == 0 || day > days_in_month(year, month) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = i64::from(if month > 2 { month - 3 } else { month + 9 });
    let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * DAYS_PER_ERA + day_of_era - EPOCH_SHIFT)
}

/// Days of a month.
pub fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Whether PostgreSQL has this date: 4714-11-24 BC to 5874897-12-31.
pub fn in_date_range(days: i64) -> bool {
    (-2_451_545..2_145_031_949).contains(&days)
}

/// Whether PostgreSQL has this time stamp: 4714-11-24 BC to 294276-12-31.
pub fn in_timestamp_range(usecs: i64) -> bool {
    (-211_813_488_000_000_000..9_223_371_331_200_000_000).contains(&usecs)
}
