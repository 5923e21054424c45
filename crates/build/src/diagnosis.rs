//! The first error in what `make` prints.
//!
//! With many jobs the last lines are about everything that stopped because of it. So the first
//! line that is an error of a compiler, linker or Kconfig is kept with what follows it; what
//! `make` itself complains about counts only where there is none.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Who complained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Complaint {
    /// gcc or clang, the assembler included.
    Compiler,
    /// The linker.
    Linker,
    /// The check of modules' symbols.
    Modpost,
    /// Kconfig.
    Kconfig,
    /// A program, library or header of the machine that is not there.
    NoProgram,
    /// The machine: its disk or memory is full, or broken.
    Machine,
    /// make.
    Make,
    /// Nobody that is known; the last line is quoted.
    Unknown,
}

impl Complaint {
    /// Whether the source is to blame: compilers and Kconfig complain about what they read,
    /// a missing program or an unknown end is the lab's.
    pub(crate) fn is_of_the_source(self) -> bool {
        match self {
            Self::Compiler | Self::Linker | Self::Modpost | Self::Kconfig | Self::Make => true,
            Self::NoProgram | Self::Machine | Self::Unknown => false,
        }
    }
}

/// The first error of a build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstError {
    /// Who complained.
    pub by: Complaint,
    /// The file, below the tree or the build folder.
    pub file: Option<String>,
    /// The line of the file.
    pub line: Option<u32>,
    /// The line of output that says what is wrong.
    pub message: String,
    /// That line and some that follow.
    pub quote: Vec<String>,
}

/// What programs say when the machine is at its end: no kernel is to blame for it.
const MACHINE: [&str; 7] = [
    "No space left on device",
    "Cannot allocate memory",
    "Killed signal terminated program",
    "Input/output error",
    "Read-only file system",
    "Disk quota exceeded",
    "Too many open files",
];

/// Headers and libraries of the machine, which the kernel's own helper programs need.
const ABSENT: [&str; 6] = [
    "cannot find -l",
    " openssl/",
    " gelf.h: No such file",
    " libelf.h: No such file",
    " zlib.h: No such file",
    " stdio.h: No such file",
];

/// Lines that are quoted.
const QUOTED: usize = 6;
/// Longest line that is kept, in characters.
const WIDEST: usize = 300;

/// Reads what `make` prints, line by line.
#[derive(Debug)]
pub(crate) struct Diagnosis {
    folders: [String; 2],
    tool: Option<FirstError>,
    make: Option<FirstError>,
    last: String,
}

impl Diagnosis {
    pub(crate) fn new(src: &Path, out: &Path) -> Self {
        let folder = |path: &Path| format!("{}/", path.display());
        Self {
            folders: [folder(src), folder(out)],
            tool: None,
            make: None,
            last: String::new(),
        }
    }

    pub(crate) fn line(&mut self, raw: &str) {
        let mut text: String = raw.chars().take(WIDEST).collect();
        for folder in &self.folders {
            text = text.replace(folder.as_str(), "");
        }
        if let Some(found) = &mut self.tool {
            if found.quote.len() < QUOTED && !is_step(&text) {
                found.quote.push(text);
            }
            return;
        }
        if !text.trim().is_empty() {
            text.clone_into(&mut self.last);
        }
        if let Some(found) = complaint(&text) {
            if found.by == Complaint::Make {
                self.make.get_or_insert(found);
            } else {
                self.tool = Some(found);
            }
        }
    }

    pub(crate) fn finish(self) -> FirstError {
        let last = self.last;
        self.tool.or(self.make).unwrap_or_else(|| FirstError {
            by: Complaint::Unknown,
            file: None,
            line: None,
            message: last.clone(),
            quote: vec![last],
        })
    }
}

/// `  CC      mm/madvise.o` and the like, of other jobs.
fn is_step(text: &str) -> bool {
    crate::progress::step(text).is_some()
}

/// What a line complains about, if it does.
fn complaint(text: &str) -> Option<FirstError> {
    let machine = MACHINE.iter().any(|sign| text.contains(sign));
    let by_place = place(text).and_then(|(file, line, rest)| {
        let by = about(&file, rest)?;
        Some((by, Some(file), line))
    });
    let absent = ABSENT.iter().any(|sign| text.contains(sign))
        && (text.contains("No such file or directory") || text.contains("cannot find"));
    let (by, file, line) = if machine {
        (Complaint::Machine, None, None)
    } else if absent {
        (Complaint::NoProgram, None, None)
    } else {
        by_place.or_else(|| by_words(text).map(|by| (by, None, None)))?
    };
    Some(FirstError {
        by,
        file,
        line,
        message: text.trim().to_owned(),
        quote: vec![text.to_owned()],
    })
}

/// `FILE:LINE:` or `FILE:LINE:COLUMN:` at the start of a line.
fn place(text: &str) -> Option<(String, Option<u32>, &str)> {
    let text = text.trim_start();
    let (file, rest) = text.split_once(':')?;
    let is_file =
        !file.is_empty() && !file.contains(char::is_whitespace) || file == "{standard input}";
    let (line, rest) = rest.split_once(':')?;
    let line: u32 = line.trim().parse().ok()?;
    if !is_file {
        return None;
    }
    let after = match rest.split_once(':') {
        Some((column, after)) if column.trim().parse::<u32>().is_ok() => after,
        _ => rest,
    };
    Some((file.to_owned(), Some(line), after.trim_start()))
}

/// Who complains about a place, judged by the words that follow it.
fn about(file: &str, rest: &str) -> Option<Complaint> {
    let name = file.rsplit('/').next().unwrap_or(file);
    let lower = rest.to_ascii_lowercase();
    if name.starts_with("Kconfig") {
        let harmless = lower.starts_with("warning") || rest.is_empty();
        return (!harmless).then_some(Complaint::Kconfig);
    }
    if rest.starts_with("***") {
        return Some(Complaint::Make);
    }
    let error = ["error:", "fatal error:", "internal compiler error:"]
        .iter()
        .any(|word| lower.starts_with(word));
    error.then_some(Complaint::Compiler)
}

/// Who complains in a line without a place.
fn by_words(text: &str) -> Option<Complaint> {
    let line = text.trim_start();
    let program = line.split(':').next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    let is = |name: &str| program == name || program.ends_with(&format!("-{name}"));
    if line.starts_with("ERROR: modpost:") {
        return Some(Complaint::Modpost);
    }
    if line.contains("undefined reference to") || line.contains("multiple definition of") {
        return Some(Complaint::Linker);
    }
    let warning = line.contains("warning:");
    if (is("ld") || is("ld.bfd") || is("ld.lld") || is("collect2")) && !warning {
        // The place of an undefined symbol comes before the line that names it.
        return (!line.ends_with(':') && !line.contains(": in function"))
            .then_some(Complaint::Linker);
    }
    if (is("gcc") || is("cc1") || is("clang") || is("as")) && line.contains("rror:") {
        return Some(Complaint::Compiler);
    }
    if line.ends_with(": not found") || line.ends_with(": command not found") {
        return Some(Complaint::NoProgram);
    }
    if line.starts_with("***")
        || line.contains("]: ***")
        || line.contains(" *** ")
        || line.starts_with("make: ***")
    {
        return Some(Complaint::Make);
    }
    None
}

impl fmt::Display for FirstError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(text: &str) -> FirstError {
        let mut diagnosis = Diagnosis::new(Path::new("/k/src"), Path::new("/k/out"));
        for line in text.lines() {
            diagnosis.line(line);
        }
        diagnosis.finish()
    }

    fn check(text: &str, by: Complaint, file: Option<&str>, line: Option<u32>, part: &str) {
        let found = first(text);
        let place = (found.file.as_deref(), found.line);
        assert_eq!((found.by, place), (by, (file, line)), "{found:?}");
        assert!(found.message.contains(part), "{found:?}");
    }

    #[test]
    fn a_compiler_error_comes_before_what_follows_from_it() {
        let text = "  CC      mm/madvise.o\n\
                    /k/src/mm/madvise.c: In function 'madvise':\n\
                    /k/src/mm/madvise.c:12:3: warning: unused variable 'x' [-Wunused-variable]\n\
                    /k/src/mm/madvise.c:395:17: error: 'visited' undeclared (first use)\n\
                    \x20 395 |   if (++visited)\n\
                    \x20     |         ^~~~~~~\n\
                    \x20 CC      mm/vmscan.o\n\
                    make[3]: *** [/k/src/scripts/Makefile.build:250: mm/madvise.o] Error 1\n\
                    make[2]: *** Waiting for unfinished jobs....\n";
        check(
            text,
            Complaint::Compiler,
            Some("mm/madvise.c"),
            Some(395),
            "undeclared",
        );
        let quote = first(text).quote;
        assert_eq!(
            quote[0],
            "mm/madvise.c:395:17: error: 'visited' undeclared (first use)"
        );
        assert!(
            quote.iter().all(|line| !line.contains("vmscan.o")),
            "{quote:?}"
        );
    }

    #[test]
    fn complaints_of_every_tool_are_known() {
        let linker = "ld: mm/madvise.o: in function `madvise':\n\
                      madvise.c:(.text+0x12): undefined reference to `missing_one'\n\
                      make[1]: *** [/k/src/Makefile:1250: vmlinux] Error 1\n";
        check(linker, Complaint::Linker, None, None, "missing_one");
        let modpost = "ERROR: modpost: \"missing_two\" [drivers/a.ko] undefined!\n";
        check(modpost, Complaint::Modpost, None, None, "missing_two");
        let kconfig = "mm/Kconfig:12: syntax error\nmm/Kconfig:11: invalid statement\n";
        check(
            kconfig,
            Complaint::Kconfig,
            Some("mm/Kconfig"),
            Some(12),
            "syntax error",
        );
        let recursive = "mm/Kconfig:12:error: recursive dependency detected!\n";
        check(
            recursive,
            Complaint::Kconfig,
            Some("mm/Kconfig"),
            Some(12),
            "recursive",
        );
        let clang = "mm/madvise.c:3:1: fatal error: 'x.h' file not found\n";
        check(
            clang,
            Complaint::Compiler,
            Some("mm/madvise.c"),
            Some(3),
            "x.h",
        );
        let assembler = "/k/src/arch/x86/a.S:9: Error: no such instruction: `movqq'\n";
        check(
            assembler,
            Complaint::Compiler,
            Some("arch/x86/a.S"),
            Some(9),
            "movqq",
        );
        let memory = "gcc: fatal error: Killed signal terminated program cc1\n";
        check(memory, Complaint::Machine, None, None, "Killed");
        let disk = "/tmp/cc1.s: Assembler messages:\n/tmp/cc1.s: Fatal error: can't write 50 \
                    bytes to section .text of mm/a.o: 'No space left on device'\n";
        check(disk, Complaint::Machine, None, None, "No space left");
        let program = "/bin/sh: 1: flex: not found\nmake[1]: *** [x] Error 127\n";
        check(program, Complaint::NoProgram, None, None, "flex");
        let library = "/usr/bin/ld: cannot find -lelf: No such file or directory\n";
        check(library, Complaint::NoProgram, None, None, "-lelf");
        let header = "scripts/sign-file.c:25:10: fatal error: openssl/opensslv.h: No such file or \
                      directory\n";
        check(header, Complaint::NoProgram, None, None, "openssl");
        let make = "make[1]: *** No rule to make target 'mm/new.o', needed by 'x'.  Stop.\n\
                    make: *** [Makefile:1: y] Error 2\n";
        check(make, Complaint::Make, None, None, "No rule to make target");
        let makefile = "mm/Makefile:7: *** missing separator.  Stop.\n";
        check(
            makefile,
            Complaint::Make,
            Some("mm/Makefile"),
            Some(7),
            "missing separator",
        );
        let other_job = format!("make[2]: *** [b: a] Error 1\n{clang}");
        check(
            &other_job,
            Complaint::Compiler,
            Some("mm/madvise.c"),
            Some(3),
            "x.h",
        );
        check(
            "something\nlast words\n",
            Complaint::Unknown,
            None,
            None,
            "last words",
        );
    }

    #[test]
    fn a_warning_is_no_error() {
        let text = "arch/x86/Kconfig:12:warning: multi-line strings not supported\n\
                    .config:13:warning: override: PREEMPT changes choice state\n\
                    ld: warning: a.o: missing .note.GNU-stack section implies executable stack\n\
                    fs/error.c:1:2: note: error: is only a word here\n";
        assert_eq!(first(text).by, Complaint::Unknown);
    }
}
