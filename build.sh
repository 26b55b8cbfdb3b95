#!/usr/bin/env bash
# Builds, runs and tests the project. Safe to repeat; says little unless something fails.
#
#   ./build.sh                build libntee, install the Node package's needs, run examples/http-history
#   ./build.sh native         build libntee only: build/ and prebuilds/<platform>-<arch>/
#   ./build.sh test [--long]  build and run every test; the last line is "N passed, M failed"
#   ./build.sh bench [name..] build and run the benchmarks: all of bench/*.mjs and c, or some
#
# Logs are in build/logs. System packages that are missing are installed with apt-get where that is
# possible without a question; else the command to install them is printed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

LOGS=$PWD/build/logs
JOBS=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
PASSED=0
FAILED=0
mkdir -p "$LOGS"

# Homebrew's headers are not where compilers look by themselves.
if command -v brew >/dev/null; then
  CPATH=$(brew --prefix)/include${CPATH:+:$CPATH}
  LIBRARY_PATH=$(brew --prefix)/lib${LIBRARY_PATH:+:$LIBRARY_PATH}
  CMAKE_PREFIX_PATH=$(brew --prefix)${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}
  export CPATH LIBRARY_PATH CMAKE_PREFIX_PATH
fi

# ---- Saying things ---------------------------------------------------------------------------------

say() { printf '%s\n' "$*"; }
die() { printf 'build.sh: %s\n' "$*" >&2; exit 1; }

# quiet NAME COMMAND...: runs it with its output in build/logs/NAME.log; shows the log's end if it fails.
quiet() {
  local log=$LOGS/$1.log
  shift
  if "$@" >"$log" 2>&1; then return 0; fi
  say "failed: $*" >&2
  grep -nE 'error:|Error:|undefined reference|E: ' "$log" | head -n 20 >&2 || true
  tail -n 20 "$log" >&2
  say "the whole log: $log" >&2
  return 1
}

# ---- System packages -------------------------------------------------------------------------------
# One need a line: what it is for | how to see that it is there | apt | dnf | apk | brew

NEEDS='
build|compiles stdio.h|gcc libc6-dev|gcc glibc-devel|gcc musl-dev|
build|command cmake|cmake|cmake|cmake|cmake
build|command make|make|make|make|make
build|compiles xxhash.h|libxxhash-dev|xxhash-devel|xxhash-dev|xxhash
test|compiles cmocka.h|libcmocka-dev|libcmocka-devel|cmocka-dev|cmocka
test|command g++|g++|gcc-c++|g++|
test|command pkg-config|pkg-config|pkgconf-pkg-config|pkgconf|pkg-config
test|command readelf|binutils|binutils|binutils|binutils
test|command clang|clang|clang|clang|
test|command clang-tidy|clang-tidy|clang-tools-extra|clang-extra-tools|llvm
test|command valgrind|valgrind|valgrind|valgrind|
test|command strace|strace|strace|strace|
test|command mkfs.ext4|e2fsprogs|e2fsprogs|e2fsprogs|
test|command mkfs.xfs|xfsprogs|xfsprogs|xfsprogs|
test|command mkfs.btrfs|btrfs-progs|btrfs-progs|btrfs-progs|
bench|compiles lmdb.h|liblmdb-dev|lmdb-devel|lmdb-dev|lmdb
bench|compiles sqlite3.h|libsqlite3-dev|sqlite-devel|sqlite-dev|sqlite
bench|compiles leveldb/c.h|libleveldb-dev|leveldb-devel|leveldb-dev|leveldb
bench|compiles rocksdb/c.h|librocksdb-dev|rocksdb-devel|rocksdb-dev|rocksdb
'

has_need() {
  case $1 in
    command) command -v "$2" >/dev/null ;;
    compiles) command -v cc >/dev/null && printf '#include <stddef.h>\n#include <stdio.h>\n#include <%s>\n' "$2" |
      cc -E - >/dev/null 2>&1 ;;
  esac
}

# need PURPOSE...: installs what is missing for these, or says how and stops.
need() {
  local purpose what apt dnf apk brew as_root='' missing_apt='' missing_dnf='' missing_apk='' missing_brew=''
  while IFS='|' read -r purpose what apt dnf apk brew; do
    [[ -n $purpose && " $* " == *" $purpose "* ]] || continue
    # On macOS the compiler comes with the system's tools, and some tools do not exist.
    [[ $(uname) == Darwin && -z $brew ]] && continue
    # shellcheck disable=SC2086
    has_need $what && continue
    missing_apt+=" $apt" missing_dnf+=" $dnf" missing_apk+=" $apk" missing_brew+=" $brew"
  done <<<"$NEEDS"
  [[ -n $missing_apt ]] || return 0

  if command -v apt-get >/dev/null; then
    if [[ $(id -u) == 0 ]]; then as_root='env'; elif sudo -n true 2>/dev/null; then as_root='sudo -n'; fi
    if [[ -n $as_root ]]; then
      say "installing:$missing_apt"
      # shellcheck disable=SC2086
      quiet apt-update $as_root apt-get -o DPkg::Lock::Timeout=120 update || true
      # shellcheck disable=SC2086
      quiet apt-install $as_root DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 \
        install -y --no-install-recommends $missing_apt || die "apt-get could not install:$missing_apt"
      return 0
    fi
  fi
  say "These are missing. Install them with the line for your system, then run this again:" >&2
  say "  Debian, Ubuntu:  sudo apt-get install -y$missing_apt" >&2
  say "  Fedora:          sudo dnf install -y$missing_dnf" >&2
  say "  Alpine:          sudo apk add$missing_apk" >&2
  say "  macOS:           brew install$missing_brew" >&2
  exit 1
}

need_node() {
  local major minor
  if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    die 'Node.js 20.19 or later, with npm, is needed'
  fi
  IFS=. read -r major minor _ <<<"$(node -p process.versions.node)"
  ((major > 20 || (major == 20 && minor >= 19))) || die "Node.js 20.19 or later is needed; this is $(node --version)"
}

# ---- Building --------------------------------------------------------------------------------------

# configure_and_build NAME DIR "TARGET..." CMAKE-OPTION...: goes on after an error, to report them all.
configure_and_build() {
  local name=$1 dir=$2 targets=$3
  shift 3
  # shellcheck disable=SC2086
  quiet "$name-configure" cmake -G 'Unix Makefiles' -S . -B "$dir" "$@" &&
    quiet "$name-build" cmake --build "$dir" --target $targets -j "$JOBS" -- -k
}

build_native() {
  configure_and_build native build 'ntee ntee_static' -DCMAKE_BUILD_TYPE=Release -DNT_PREBUILDS=ON -DNT_TESTS=AUTO
}

# The Node package's own needs; the benchmarks bring more, some of which are compiled.
npm_install() {
  need_node
  if [[ ${1:-} == all ]]; then
    quiet npm-install npm install --no-audit --no-fund
  else
    quiet npm-install npm install --no-audit --no-fund --workspace bindings/node
  fi
}

# ---- Tests -----------------------------------------------------------------------------------------

# part "TITLE" COUNTER COMMAND...: runs a part of the tests, counts with COUNTER what its log says.
part() {
  local title=$1 counter=$2 started=$SECONDS status=0 log passed failed name
  shift 2
  name=$(tr -cs 'a-zA-Z0-9\n' '-' <<<"$title" | sed 's/-$//')
  log=$LOGS/test-$name.log
  "$@" >"$log" 2>&1 || status=$?
  read -r passed failed <<<"$("$counter" "$log" "$status")"
  # What failed without saying so is a failure all the same.
  if ((status != 0 && failed == 0)); then failed=1; fi
  PASSED=$((PASSED + passed))
  FAILED=$((FAILED + failed))
  printf '%-46s %6d passed, %d failed %6d s\n' "$title" "$passed" "$failed" $((SECONDS - started))
  if ((failed > 0)); then
    grep -nE '^not ok|\*\*\*(Failed|Timeout|Exception)|\[  FAILED  \]|ERROR|error:|Error:|Assertion' "$log" |
      head -n 40 >&2 || true
    tail -n 25 "$log" >&2
    say "the whole log: $log" >&2
  fi
}

# A command that either works or not.
count_one() { if (($2 == 0)); then echo 1 0; else echo 0 1; fi; }

# node --test --test-reporter=tap
count_tap() {
  awk '/^# pass /{p += $3} /^# (fail|cancelled) /{f += $3} END {print p + 0, f + 0}' "$1"
}

# ctest -VV: the cases inside a cmocka program count one each, any other program is one case.
count_ctest() {
  awk '
    /^[0-9]+: \[  PASSED  \] [0-9]+ test/ {n = $1; ok[n] += $5}
    /^[0-9]+: \[  FAILED  \] (tests: )?[0-9]+ test/ {n = $1; for (i = 4; i <= NF; i++) if ($i ~ /^[0-9]+$/) {bad[n] += $i; break}}
    /^ *[0-9]+\/[0-9]+ Test +#[0-9]+:/ {
      match($0, /#[0-9]+:/); n = substr($0, RSTART + 1, RLENGTH - 1)
      if ($0 ~ /   Passed /) p += (n in ok) ? ok[n] : 1
      else if ($0 !~ /\*\*\*Skipped/) {p += ok[n]; f += bad[n] > 0 ? bad[n] : 1}
    }
    END {print p + 0, f + 0}' "$1"
}

run_ctest() {
  local dir=$1
  shift
  ctest --test-dir "$dir" --no-tests=error -VV -j "$JOBS" "$@"
}

# suite TITLE DIR "CTEST-OPTIONS" CMAKE-OPTION...: builds everything in DIR, then runs ctest.
suite() {
  local title=$1 dir=$2 select=$3
  shift 3
  if ! configure_and_build "$(basename "$dir")" "$dir" all -DNT_TESTS=ON "$@"; then
    say "$title: not everything was built" >&2
    FAILED=$((FAILED + 1))
  fi
  # shellcheck disable=SC2086
  part "$title" count_ctest run_ctest "$dir" $select
}

node_tests() { node --test --test-reporter=tap "$@"; }

test_everything() {
  need build test
  build_native || die 'libntee does not build'
  npm_install

  export NT_BUILD_DIR=$PWD/build
  suite 'C tests (gcc, release)' build '' -DCMAKE_BUILD_TYPE=Release -DNT_PREBUILDS=ON
  part 'layers, names, sizes, ABI, documents' count_tap node_tests tests/*/*.test.mjs
  part 'Node package' count_tap npm_test
  part 'clang, all warnings' count_one clang_build
  part 'clang-tidy' count_one clang_tidy
  suite 'C tests (ASan, UBSan)' build/asan '-L unit|asan' -DCMAKE_BUILD_TYPE=Debug \
    -DNT_SANITIZE=address,undefined
  suite 'C tests (TSan)' build/tsan '-L threads' -DCMAKE_BUILD_TYPE=Debug -DNT_SANITIZE=thread
  suite 'C tests (valgrind)' build/valgrind '-L valgrind' -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DNT_VALGRIND=ON
  say ''
  say "$PASSED passed, $FAILED failed"
  ((FAILED == 0 && PASSED > 0))
}

npm_test() { npm test --silent --workspace bindings/node -- --test-reporter=tap; }

clang_build() {
  cmake -G 'Unix Makefiles' -S . -B build/clang -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Release \
    -DNT_TESTS=ON && cmake --build build/clang -j "$JOBS" -- -k
}

# The analyzer, which takes minutes, belongs to the long tier.
clang_tidy() {
  local checks='-clang-analyzer-*'
  if [[ -n ${NT_LONG:-} ]]; then checks=; fi
  find src -name '*.c' -print0 | xargs -0 -n 4 -P "$JOBS" \
    clang-tidy --quiet -p build/clang --checks="$checks" --warnings-as-errors='*'
}

# ---- Benchmarks ------------------------------------------------------------------------------------

run_benches() {
  local name
  need build bench
  build_native || die 'libntee does not build'
  quiet bench-build cmake --build build --target ntee-bench -j "$JOBS"
  npm_install all
  if (($# == 0)); then
    for name in bench/*.mjs; do set -- "$@" "$(basename "$name" .mjs)"; done
    set -- "$@" c
  fi
  for name in "$@"; do
    if [[ $name == c ]]; then build/bench/ntee-bench; else node "bench/$name.mjs"; fi
  done
}

# ---- Commands --------------------------------------------------------------------------------------

case ${1:-} in
  '')
    need build
    build_native || die 'libntee does not build'
    npm_install
    node examples/http-history/main.mjs
    ;;
  native)
    need build
    build_native || die 'libntee does not build'
    ;;
  test)
    [[ ${2:-} == --long ]] && export NT_LONG=1
    test_everything
    ;;
  bench)
    shift
    run_benches "$@"
    ;;
  *)
    sed -n '2,10s/^# \{0,1\}//p' "$0"
    [[ $1 == help || $1 == --help || $1 == -h ]]
    ;;
esac
