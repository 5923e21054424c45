//! New jobs: everything is checked, everything that is wrong is said at once.

use std::collections::{BTreeMap, BTreeSet};

use klab_model::{
    Arch, Board, BoardName, BoardSelector, BoardSlot, Job, KernelName, Owner, Plan, TagSelector,
    Variant, VariantName,
};
use klab_store::{JobRecord, PageRequest};

use super::{Engine, EngineError, Wanted};

/// The most rounds of a job.
const MAX_ROUNDS: u32 = 1000;
/// The most runs of a job.
const MAX_RUNS: u64 = 100_000;

/// A submission as it came in.
#[derive(Debug, Clone)]
pub(crate) struct Submission {
    pub(crate) owner: String,
    /// Name and kernels of each variant.
    pub(crate) variants: Vec<(String, Vec<String>)>,
    pub(crate) boards: String,
    pub(crate) rounds: u32,
    pub(crate) plan_file: String,
    pub(crate) plan_text: String,
}

/// What is wrong with a submission.
#[derive(Default)]
struct Violations(Vec<(String, String)>);

impl Violations {
    fn add(&mut self, field: impl Into<String>, problem: impl ToString) {
        self.0.push((field.into(), problem.to_string()));
    }

    fn keep<T, E: ToString>(&mut self, field: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.add(field, error)).ok()
    }
}

impl Engine {
    /// Accepts a job or says everything that is wrong with it.
    pub(crate) async fn submit(&self, submission: Submission) -> Result<JobRecord, EngineError> {
        let mut wrong = Violations::default();
        let owner = wrong.keep("owner", Owner::parse(&submission.owner));
        let plan = check_plan(&submission, &mut wrong);
        check_rounds(submission.rounds, &mut wrong);
        let variants = self
            .check_variants(&submission.variants, &mut wrong)
            .await?;
        let boards = self
            .check_boards(&submission, &variants, &mut wrong)
            .await?;
        check_size(
            &submission,
            boards.as_deref().unwrap_or_default(),
            &mut wrong,
        );
        let (Some(owner), Some(plan), Some(boards), true) =
            (owner, plan, boards, wrong.0.is_empty())
        else {
            return Err(EngineError::BadRequest(wrong.0));
        };
        let job = Job {
            id: self.new_id(),
            owner,
            variants: variants.into_iter().map(Checked::variant).collect(),
            boards,
            rounds: submission.rounds,
            plan,
            created_at: self.now(),
        };
        let runs = klab_sched::expand(&job, || self.new_id());
        self.store.create_job(&job, &runs).await?;
        self.feed_changed();
        self.assignable.notify_one();
        Ok(self.store.job(job.id).await?)
    }

    /// The variants whose name and kernels are right.
    async fn check_variants(
        &self,
        variants: &[(String, Vec<String>)],
        wrong: &mut Violations,
    ) -> Result<Vec<Checked>, EngineError> {
        if variants.is_empty() {
            wrong.add("variants", "at least one NAME=KERNEL is needed");
        }
        let mut good = Vec::new();
        let mut names = BTreeSet::new();
        for (index, (name, kernels)) in variants.iter().enumerate() {
            let field = format!("variants[{index}].name");
            let name = wrong.keep(&field, VariantName::parse(name));
            let repeated = name
                .as_ref()
                .is_some_and(|name| !names.insert(name.clone()));
            if let (true, Some(name)) = (repeated, &name) {
                wrong.add(field, format!("variant {name} is given twice"));
            }
            let kernels = self.check_kernels(kernels, index, wrong).await?;
            if let (Some(name), false) = (name, kernels.is_empty()) {
                good.push(Checked { name, kernels });
            }
        }
        Ok(good)
    }

    /// The kernels of a variant that are right.
    async fn check_kernels(
        &self,
        kernels: &[String],
        index: usize,
        wrong: &mut Violations,
    ) -> Result<Vec<(KernelName, Arch)>, EngineError> {
        let field = format!("variants[{index}].kernel");
        if kernels.is_empty() {
            wrong.add(&field, "a variant needs a kernel");
        }
        let mut good: Vec<(KernelName, Arch)> = Vec::new();
        for kernel in kernels {
            let Some((kernel, arch)) = self.check_kernel(kernel, &field, wrong).await? else {
                continue;
            };
            match good.iter().find(|(_, of)| *of == arch) {
                None => good.push((kernel, arch)),
                Some((other, _)) => {
                    let problem = format!("{other} and {kernel} are both for {arch}: take one");
                    wrong.add(&field, problem);
                }
            }
        }
        Ok(good)
    }

    /// A kernel that the lab has or will have, and its architecture.
    async fn check_kernel(
        &self,
        name: &str,
        field: &str,
        wrong: &mut Violations,
    ) -> Result<Option<(KernelName, Arch)>, EngineError> {
        let Some(name) = wrong.keep(field, KernelName::parse(name)) else {
            return Ok(None);
        };
        match self.wanted(&name).await? {
            Some(Wanted::Ready(arch) | Wanted::Building(arch, _)) => Ok(Some((name, arch))),
            Some(Wanted::Never(never)) => {
                let why = never.failure.reason;
                wrong.add(field, format!("kernel {name} was not built: {why}"));
                Ok(None)
            }
            None => {
                let known = self.kernel_names().await?;
                wrong.add(field, unknown("kernel", name.as_str(), &known, ADD_KERNEL));
                Ok(None)
            }
        }
    }

    async fn kernel_names(&self) -> Result<Vec<String>, EngineError> {
        let page = PageRequest::first(PageRequest::MAX_SIZE);
        let kernels = self.store.list_kernels(&page).await?;
        Ok(kernels.items.into_iter().map(|k| k.name.into()).collect())
    }

    async fn check_boards(
        &self,
        submission: &Submission,
        variants: &[Checked],
        wrong: &mut Violations,
    ) -> Result<Option<Vec<BoardSlot>>, EngineError> {
        let Some(selector) = wrong.keep("boards", BoardSelector::parse(&submission.boards)) else {
            return Ok(None);
        };
        let known: BTreeMap<BoardName, Board> = self
            .store
            .list_boards()
            .await?
            .into_iter()
            .map(|board| (board.value.name.clone(), board.value))
            .collect();
        match &selector {
            BoardSelector::Named(names) => check_named(names, &known, variants, wrong),
            BoardSelector::Tagged(tags) => check_tagged(tags, &known, variants, wrong),
        }
        Ok(Some(BoardSlot::of(&selector)))
    }
}

const ADD_KERNEL: &str = "add it with `klab kernel add NAME PATH`";
const CONNECT_BOARD: &str = "a board is known once its agent has connected";

fn check_plan(submission: &Submission, wrong: &mut Violations) -> Option<Plan> {
    let file = match submission.plan_file.as_str() {
        "" => "plan",
        file => file,
    };
    match klab_config::parse_plan(file, &submission.plan_text) {
        Ok(plan) => Some(plan),
        Err(diagnostics) => {
            for diagnostic in &diagnostics {
                wrong.add("plan", diagnostic);
            }
            if diagnostics.left_out() > 0 {
                wrong.add("plan", format!("and {} more", diagnostics.left_out()));
            }
            None
        }
    }
}

fn check_rounds(rounds: u32, wrong: &mut Violations) {
    if !(1..=MAX_ROUNDS).contains(&rounds) {
        let problem = format!("found {rounds}; expected 1 to {MAX_ROUNDS}");
        wrong.add("rounds", problem);
    }
}

fn check_size(submission: &Submission, boards: &[BoardSlot], wrong: &mut Violations) {
    let variants = submission.variants.len() as u64;
    let slots = boards.len() as u64;
    let runs = variants
        .saturating_mul(slots)
        .saturating_mul(u64::from(submission.rounds));
    if runs > MAX_RUNS {
        let problem = format!(
            "{variants} variants on {slots} boards in {} rounds are {runs} runs; a job has at \
             most {MAX_RUNS}: ask for fewer rounds, or split it",
            submission.rounds
        );
        wrong.add("rounds", problem);
    }
}

/// A variant whose kernels are known.
struct Checked {
    name: VariantName,
    /// At least one, each for another architecture.
    kernels: Vec<(KernelName, Arch)>,
}

impl Checked {
    fn runs_on(&self, arch: Arch) -> bool {
        self.kernels.iter().any(|(_, of)| *of == arch)
    }

    /// `base (kernel k1 for x86_64)`
    fn describe(&self) -> String {
        let kernels = self.kernels.iter();
        let kernels: Vec<String> = kernels
            .map(|(kernel, arch)| format!("kernel {kernel} for {arch}"))
            .collect();
        format!("{} ({})", self.name, kernels.join(", "))
    }

    fn variant(self) -> Variant {
        Variant {
            name: self.name,
            kernels: self.kernels.into_iter().map(|(kernel, _)| kernel).collect(),
        }
    }
}

/// Boards by their names: each must have a kernel of every variant, and no kernel may be for
/// no board.
fn check_named(
    names: &[BoardName],
    known: &BTreeMap<BoardName, Board>,
    variants: &[Checked],
    wrong: &mut Violations,
) {
    let mut archs = BTreeSet::new();
    let mut fits = true;
    for name in names {
        let Some(board) = known.get(name) else {
            let names: Vec<String> = known.keys().map(ToString::to_string).collect();
            wrong.add(
                "boards",
                unknown("board", name.as_str(), &names, CONNECT_BOARD),
            );
            fits = false;
            continue;
        };
        archs.insert(board.arch);
        let without: Vec<String> = variants
            .iter()
            .filter(|variant| !variant.runs_on(board.arch))
            .map(Checked::describe)
            .collect();
        if !without.is_empty() {
            fits = false;
            let problem = format!(
                "board {name} is {}, which variants have no kernel for: {}",
                board.arch,
                without.join(", ")
            );
            wrong.add("boards", problem);
        }
    }
    for (kernel, arch) in variants.iter().flat_map(|variant| &variant.kernels) {
        if fits && !archs.contains(arch) {
            let problem =
                format!("kernel {kernel} is {arch}, and none of the boards is: leave it out");
            wrong.add("variants", problem);
        }
    }
}

/// One board by its tags: which one is not known yet, so all kernels are for one architecture.
fn check_tagged(
    tags: &TagSelector,
    known: &BTreeMap<BoardName, Board>,
    variants: &[Checked],
    wrong: &mut Violations,
) {
    let archs: BTreeSet<Arch> = variants
        .iter()
        .flat_map(|variant| variant.kernels.iter().map(|(_, arch)| *arch))
        .collect();
    if archs.len() > 1 {
        let each: Vec<String> = variants.iter().map(Checked::describe).collect();
        let problem = format!(
            "one board by its tags runs kernels of one architecture: {}; name the boards, or \
             leave kernels out",
            each.join(", ")
        );
        wrong.add("variants", problem);
        return;
    }
    let arch = archs.first();
    let fitting: Vec<&Board> = known
        .values()
        .filter(|board| tags.matches(board.arch, &board.tags))
        .collect();
    if fitting
        .iter()
        .any(|board| arch.is_none_or(|arch| board.arch == *arch))
    {
        return;
    }
    let wanted = BoardSelector::Tagged(tags.clone());
    let problem = match (arch, fitting.first()) {
        (Some(arch), Some(board)) => format!(
            "the kernels are for {arch}, but of the boards with {wanted} none is: board {} is {}",
            board.name, board.arch
        ),
        _ => {
            let boards: Vec<String> = known.values().map(describe).collect();
            format!(
                "no known board has {wanted}; {}",
                listed("boards", &boards, CONNECT_BOARD)
            )
        }
    };
    wrong.add("boards", problem);
}

fn describe(board: &Board) -> String {
    let tags = board
        .tags
        .iter()
        .map(|(key, value)| format!(" {key}={value}"));
    format!(
        "{} (arch={}{})",
        board.name,
        board.arch,
        tags.collect::<String>()
    )
}

/// `there is no kernel rt; did you mean rt-6.1? known kernels: ...`
fn unknown(what: &str, name: &str, known: &[String], mend: &str) -> String {
    let guess =
        nearest(name, known).map_or_else(String::new, |near| format!("; did you mean {near}?"));
    format!(
        "there is no {what} {name}{guess}; {}",
        listed(&format!("{what}s"), known, mend)
    )
}

fn listed(what: &str, known: &[String], mend: &str) -> String {
    const SHOWN: usize = 20;
    if known.is_empty() {
        return format!("no {what} are known yet: {mend}");
    }
    let shown = known.iter().take(SHOWN).cloned().collect::<Vec<_>>();
    let more = match known.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("known {what}: {}{more} ({mend})", shown.join(", "))
}

/// The known name that was probably meant.
fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(name, known), known.as_str()))
        .filter(|(distance, known)| *distance <= known.len().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}
