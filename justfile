# The door to every task. `just` lists them.

target := env("CARGO_TARGET_DIR", "target")

_list:
    @just --list --unsorted

# Compare two real kernels on a virtual board, from nothing.
demo *arguments:
    ./demo {{arguments}}

# Build a base and a patch series on it, and compare them on a virtual board.
demo-series *arguments:
    ./demo --series tests/data/series/madvise-resched.mbox {{arguments}}

# Every check; arguments filter the tests.
test *filter:
    ./test {{filter}}

# Build the programs, and the agent for boards.
build: agent (agent "riscv64")
    cargo build --workspace --bins

# Build the static agent for boards of an architecture, x86_64 or riscv64.
agent arch="x86_64":
    bash -euc '. .ci/common.sh; build_agent {{arch}}; echo "$target/$(agent_triple {{arch}})/agent/klab-agent"'

# What clippy says.
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# Format the code.
fmt:
    cargo fmt --all

# Licences, banned crates and sources; needs cargo-deny.
deny:
    cargo deny check bans licenses sources

# Run the benchmarks: figures beside a peer or a limit.
bench *arguments:
    cargo bench --quiet --workspace --bench '*' {{arguments}}

# Look at changed golden files and accept them; needs cargo-insta.
accept:
    cargo insta review

# Fuzz what reads mails, for some seconds.
fuzz seconds="60":
    .ci/fuzz {{seconds}}
