# shellcheck shell=bash
# What ./demo, ./test and .ci/fuzz share. Sourced after `cd` into the repository.

say() { printf '%s\n' "$*" >&2; }

die() {
    say "error: $*"
    exit 3
}

# Where cargo puts what it builds.
# shellcheck disable=SC2034
target=${CARGO_TARGET_DIR:-target}

# as_root COMMAND...: fails where that needs a password or is not possible.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo -n "$@"
    else
        return 1
    fi
}

# apt_install PACKAGE...: says what it does; fails where it cannot.
apt_install() {
    command -v apt-get >/dev/null || return 1
    say "installing Debian packages: $*"
    local quiet=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -y)
    as_root "${quiet[@]}" install --no-install-recommends "$@" >/dev/null && return
    say "package lists may be old: apt-get update, then once more"
    as_root "${quiet[@]}" update >/dev/null &&
        as_root "${quiet[@]}" install --no-install-recommends "$@" >/dev/null
}

# A Rust toolchain is the developer's own choice: it is asked for, not installed.
need_cargo() {
    if ! command -v cargo >/dev/null && [ -x "$HOME/.cargo/bin/cargo" ]; then
        PATH="$HOME/.cargo/bin:$PATH"
    fi
    command -v cargo >/dev/null ||
        die "cargo is missing. Get Rust 1.94 or newer from https://rustup.rs, then start this again."
}

# Some crates bring C sources: SQLite, zstd and BLAKE3.
need_compiler() {
    command -v cc >/dev/null || apt_install build-essential || die \
        "a C compiler is missing and could not be installed. As root: apt-get install build-essential"
}

# agent_triple ARCH
agent_triple() {
    case $1 in
        x86_64) echo x86_64-unknown-linux-gnu ;;
        riscv64) echo riscv64gc-unknown-linux-gnu ;;
        *) die "$1 is no architecture of boards: expected x86_64 or riscv64" ;;
    esac
}

# build_agent [ARCH]: the agent runs on boards of any distribution, so it is linked statically.
build_agent() {
    local triple
    triple=$(agent_triple "${1:-x86_64}")
    [ "$triple" != riscv64gc-unknown-linux-gnu ] || need_riscv64
    RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" \
        cargo build --quiet -p klab-agent --profile agent --target "$triple"
}

# What builds programs for riscv64: the target of Rust, and a C compiler with its library.
need_riscv64() {
    local triple=riscv64gc-unknown-linux-gnu gcc=riscv64-linux-gnu-gcc
    export CARGO_TARGET_RISCV64GC_UNKNOWN_LINUX_GNU_LINKER=$gcc \
        CC_riscv64gc_unknown_linux_gnu=$gcc AR_riscv64gc_unknown_linux_gnu=riscv64-linux-gnu-ar
    [ -d "$(rustc --print sysroot)/lib/rustlib/$triple" ] || {
        say "installing the Rust target $triple"
        rustup --quiet target add "$triple" ||
            die "the Rust target $triple is missing: rustup target add $triple"
    }
    [ -f /usr/riscv64-linux-gnu/lib/libc.a ] && command -v $gcc >/dev/null ||
        apt_install gcc-riscv64-linux-gnu libc6-dev-riscv64-cross ||
        die "no compiler for riscv64. As root: apt-get install gcc-riscv64-linux-gnu libc6-dev-riscv64-cross"
}

# Sets `tools`, the folder of what need_tool installs.
tools_folder() {
    mkdir -p "$target"
    tools=$(readlink -f "$target")/tools
    PATH="$PATH:$tools/bin"
}

# need_tool NAME VERSION: a cargo subcommand, as a ready-made program where there is one
# (wheels that Astral builds from the tools' own tags), compiled otherwise.
need_tool() {
    local name=$1 version=$2
    has_tool "$name" && return
    say "installing $name $version into $tools"
    { [ -x "$tools/bin/pip" ] || python3 -m venv "$tools"; } >/dev/null 2>&1 &&
        "$tools/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: \
            "astral-dev-toolchain-$name==$version" >/dev/null 2>&1 &&
        has_tool "$name" && return
    say "compiling it: some minutes, once"
    cargo install --quiet --locked --root "$tools" --version "$version" "$name"
}

has_tool() { "$1" --version >/dev/null 2>&1; }
