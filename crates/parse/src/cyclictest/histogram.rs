//! Histogram text of `cyclictest -h` and `-H`: buckets, then a footer of `#` lines.
//!
//! `-H` adds a column with the sum over all threads; it is recognised because the
//! `# Min Latencies:` line has one number per thread, and passed over. Newer versions
//! print no `# Total:` and no empty buckets.

use klab_model::ResultFormat;

use super::{Histogram, Thread, percentiles, summarise};
use crate::error::Trouble;
use crate::lines::Lines;
use crate::{ErrorKind, ParseError, Parsed};

const FORMAT: ResultFormat = ResultFormat::CyclictestHistogram;
const ROW: &str = "`LATENCY COUNT...` with one count per thread";

pub(crate) fn parse(bytes: &[u8]) -> Result<Parsed, ParseError> {
    let lines = Lines::new(bytes);
    let mut table = Table::default();
    let mut inside = false;
    for (number, line) in lines.numbered() {
        if inside {
            table.line(number, line.trim())?;
        } else {
            inside = line.trim_end() == "# Histogram";
        }
    }
    if !inside {
        let (line, found) = lines.last();
        return Err(Trouble::new(FORMAT, ErrorKind::Foreign, line)
            .found(found)
            .mend("run cyclictest with -h MICROSECONDS and name the file it prints to")
            .expected("a line `# Histogram`"));
    }
    if !lines.ended() {
        return Err(lines.cut(FORMAT, "an end of the last line"));
    }
    table.finish(&lines)
}

/// A footer line: its number and its values.
type Footer = Option<(usize, Vec<u64>)>;

#[derive(Default)]
struct Table {
    rows: Vec<(u64, Vec<u64>)>,
    total: Footer,
    min: Footer,
    avg: Footer,
    max: Footer,
    overflows: Footer,
    thread_lines: usize,
}

impl Table {
    fn line(&mut self, number: usize, line: &str) -> Result<(), ParseError> {
        let Some(text) = line.strip_prefix('#') else {
            return if line.is_empty() {
                Ok(())
            } else {
                self.row(number, line)
            };
        };
        let text = text.trim_start();
        let fields: [(&str, &mut Footer); 5] = [
            ("Total:", &mut self.total),
            ("Min Latencies:", &mut self.min),
            ("Avg Latencies:", &mut self.avg),
            ("Max Latencies:", &mut self.max),
            ("Histogram Overflows:", &mut self.overflows),
        ];
        for (label, field) in fields {
            if let Some(rest) = text.strip_prefix(label) {
                let values = numbers(rest).ok_or_else(|| {
                    Trouble::new(FORMAT, ErrorKind::Malformed, number)
                        .found(line)
                        .expected(format!("numbers after `# {label}`"))
                })?;
                *field = Some((number, values));
                return Ok(());
            }
        }
        self.thread_lines += usize::from(text.starts_with("Thread "));
        Ok(())
    }

    fn row(&mut self, number: usize, line: &str) -> Result<(), ParseError> {
        let fail = |kind| Trouble::new(FORMAT, kind, number).found(line);
        let values = numbers(line).filter(|v| v.len() >= 2);
        let mut values = values.ok_or_else(|| fail(ErrorKind::Malformed).expected(ROW))?;
        let latency = values.remove(0);
        if let Some((last, counts)) = self.rows.last()
            && (latency <= *last || values.len() != counts.len())
        {
            let expected = format!("a latency above {last} and {} counts", counts.len());
            return Err(fail(ErrorKind::Inconsistent).expected(expected));
        }
        self.rows.push((latency, values));
        Ok(())
    }

    fn finish(self, lines: &Lines<'_>) -> Result<Parsed, ParseError> {
        let threads = self.threads(lines)?;
        let count = threads.len();
        if self.thread_lines < count {
            return Err(missing(lines, &format!("Thread {}:", self.thread_lines)));
        }
        self.check_total(count)?;
        let mut histogram = Histogram {
            units_per_us: 1.0,
            ..Histogram::default()
        };
        for (latency, counts) in &self.rows {
            let sum = counts[..count]
                .iter()
                .fold(0, |sum: u64, n| sum.saturating_add(*n));
            histogram.buckets.insert(*latency, sum);
        }
        let mut parsed = Parsed::new(FORMAT);
        summarise(&mut parsed, &threads);
        let cycles = threads
            .iter()
            .fold(0, |sum: u64, t| sum.saturating_add(t.cycles));
        percentiles(&mut parsed, &histogram, cycles);
        Ok(parsed)
    }

    /// The threads; every line of the footer and every row has a number for each.
    fn threads(&self, lines: &Lines<'_>) -> Result<Vec<Thread>, ParseError> {
        let (at, min) = present(&self.min, lines, "Min Latencies:")?;
        let (_, avg) = present(&self.avg, lines, "Avg Latencies:")?;
        let (_, max) = present(&self.max, lines, "Max Latencies:")?;
        let (_, overflows) = present(&self.overflows, lines, "Histogram Overflows:")?;
        let count = min.len();
        let columns = self.rows.first().map_or(count, |(_, counts)| counts.len());
        let lengths = [avg.len(), max.len(), overflows.len(), columns];
        if count == 0 || lengths.iter().any(|n| *n < count) {
            return Err(Trouble::new(FORMAT, ErrorKind::Inconsistent, at)
                .found(format!("{count} minimum latencies, {columns} columns"))
                .expected("as many numbers in every line as there are threads"));
        }
        let thread = |index: usize| Thread {
            cycles: self.column(index).saturating_add(overflows[index]),
            min_us: min[index] as f64,
            avg_us: avg[index] as f64,
            max_us: max[index] as f64,
        };
        let threads: Vec<_> = (0..count).map(thread).collect();
        if let Some(index) = threads.iter().position(|t| t.cycles == 0) {
            return Err(Trouble::new(FORMAT, ErrorKind::NothingMeasured, at)
                .found(format!("thread {index} without latencies"))
                .expected("at least one cycle of every thread"));
        }
        Ok(threads)
    }

    /// The buckets must add up to the totals; otherwise rows are missing.
    fn check_total(&self, count: usize) -> Result<(), ParseError> {
        let Some((at, total)) = &self.total else {
            return Ok(());
        };
        for index in 0..count {
            let sum = self.column(index);
            if total.get(index) != Some(&sum) {
                return Err(Trouble::new(FORMAT, ErrorKind::Inconsistent, *at)
                    .found(format!("total {:?} of thread {index}", total.get(index)))
                    .expected(format!("{sum}, the sum of its buckets")));
            }
        }
        Ok(())
    }

    fn column(&self, index: usize) -> u64 {
        let counts = self.rows.iter().filter_map(|(_, counts)| counts.get(index));
        counts.fold(0, |sum: u64, n| sum.saturating_add(*n))
    }
}

/// Line number and values of a line of the footer, which must be there.
fn present<'a>(
    footer: &'a Footer,
    lines: &Lines<'_>,
    label: &str,
) -> Result<(usize, &'a [u64]), ParseError> {
    let found = footer.as_ref().map(|(at, values)| (*at, values.as_slice()));
    found.ok_or_else(|| missing(lines, label))
}

fn missing(lines: &Lines<'_>, label: &str) -> ParseError {
    lines.cut(FORMAT, format!("a line `# {label}`"))
}

fn numbers(text: &str) -> Option<Vec<u64>> {
    text.split_whitespace()
        .map(|word| word.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n\
        000005 000100\t000050\n000006 000700\t000800\n000009 000150\t000140\n\
        # Total: 000000950 000000990\n# Min Latencies: 00005 00005\n# Avg Latencies: 00006 00007\n\
        # Max Latencies: 00041 00052\n# Histogram Overflows: 00001 00002\n\
        # Histogram Overflow at cycle number:\n# Thread 0: 00017\n# Thread 1: 00003 00008\n\n";

    fn values(text: &str) -> Result<Vec<f64>, ErrorKind> {
        parse(text.as_bytes())
            .map(|p| p.samples.iter().map(|s| s.value).collect())
            .map_err(|e| e.kind)
    }

    fn expected() -> Vec<f64> {
        let avg = (6.0 * 951.0 + 7.0 * 992.0) / 1943.0;
        vec![5.0, avg, 52.0, 6.0, 9.0, 9.0]
    }

    #[test]
    fn the_maximum_is_that_of_the_footer() {
        let found = values(SMALL).unwrap();
        // min, avg, max, p50, p90, p99; p99.9 lies among the three overflows.
        assert_eq!(found.len(), 6);
        for (found, expected) in found.iter().zip(expected()) {
            assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
        }
        assert_eq!(parse(SMALL.as_bytes()).unwrap().remarks.len(), 1);
    }

    #[test]
    fn the_column_over_all_threads_is_passed_over() {
        let all = "# Histogram\n\
            000005 000100\t000050\t000150\n000006 000700\t000800\t001500\n000009 000150\t000140\t000290\n\
            # Total: 000000950 000000990 000001940\n# Min Latencies: 00005 00005\n\
            # Avg Latencies: 00006 00007\n# Max Latencies: 00041 00052 00052\n\
            # Histogram Overflows: 00001 00002 00003\n\
            # Histogram Overflow at cycle number:\n# Thread 0: 00017\n# Thread 1: 00003 00008\n\n";
        assert_eq!(values(all), values(SMALL));
    }

    #[test]
    fn newer_versions_print_no_total() {
        let text = SMALL.replace("# Total: 000000950 000000990\n", "");
        assert_eq!(values(&text), values(SMALL));
    }

    #[test]
    fn troubles() {
        let cut = |at: &str| values(&SMALL[..SMALL.find(at).unwrap()]);
        assert_eq!(cut("# Min"), Err(ErrorKind::Cut));
        assert_eq!(cut("# Max"), Err(ErrorKind::Cut));
        assert_eq!(cut("# Histogram Overflows"), Err(ErrorKind::Cut));
        assert_eq!(cut("# Thread 1"), Err(ErrorKind::Cut));
        assert_eq!(cut("00008\n\n"), Err(ErrorKind::Cut));
        assert_eq!(values(""), Err(ErrorKind::Foreign));
        assert_eq!(
            values(&SMALL.replace("000700", "000701")),
            Err(ErrorKind::Inconsistent)
        );
        assert_eq!(
            values(&SMALL.replace("000006 0", "000004 0")),
            Err(ErrorKind::Inconsistent)
        );
        assert_eq!(
            values(&SMALL.replace("\t000800", "")),
            Err(ErrorKind::Inconsistent)
        );
        assert_eq!(
            values(&SMALL.replace("00041 00052", "00041")),
            Err(ErrorKind::Inconsistent)
        );
        assert_eq!(
            values(&SMALL.replace("00041", "x")),
            Err(ErrorKind::Malformed)
        );
        assert_eq!(
            values(&SMALL.replace("000006 ", "sched ")),
            Err(ErrorKind::Malformed)
        );
        let none = "# Histogram\n# Min Latencies: 1000000\n# Avg Latencies: 00000\n\
            # Max Latencies: 00000\n# Histogram Overflows: 00000\n\
            # Thread 0:\n";
        assert_eq!(values(none), Err(ErrorKind::NothingMeasured));
    }
}
