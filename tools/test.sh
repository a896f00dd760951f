#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs what is missing, builds, runs the tests on the CPU (PoCL), then those without the whole
# network again under AddressSanitizer and UBSan. The last line is `N passed, N failed`,
# with `, N skipped` where a driver is missing that a test is about.
#
#     tools/test.sh [--full | --quick [STEM]]
#
# --full adds the long runs: mutations of all kernels, many interrupted trainings, gradients at
# saved states, full accuracy, long fuzzing, the report on a second OpenCL implementation.
#
# --quick builds without a sanitizer and runs the checks of the tree's form and the short tests that
# need no device. With STEM also what is named after it: `gelu` means the checks of this operator
# (small shapes alone where all take minutes), `plan/place` every test with that in its name.
set -u
cd "$(dirname "$0")/.." || exit 1
. tools/packages.sh

usage()
{
    sed -n '3,14s/^# \{0,1\}//p' tools/test.sh
}

mode=everything stem=
case $#:${1-} in
0:) ;;
1:--full | 1:--quick) mode=${1#--} ;;
2:--quick) mode=quick stem=$2 ;;
1:--help) usage; exit 0 ;;
*) usage >&2; exit 2 ;;
esac

# Whatever ends this early, the last lines say so, and how long each part before took.
scratch= counted= parts=
finish()
{
    [ -z "$scratch" ] || rm -rf "$scratch"
    [ -n "$counted" ] || { printf 'ended early%s\n0 passed, 1 failed\n' "$parts"; exit 1; }
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

scratch=$(mktemp -d) || exit 1
export QN_CACHE_DIR="$scratch/cache"
unset QN_DEVICE QN_DATA_DIR

# The names of the tests that the options of `meson test` leave, one a line.
list_tests()
{
    folder=$1
    shift
    meson test -C "$folder" --no-rebuild --list "$@" 2>/dev/null | sed -n 's/^[^/]* \/ //p'
}

# run_tests FOLDER NAME [OPTION OF meson test]...: the log becomes FOLDER/meson-logs/NAME.json, and
# $logs gets its path and the number of tests it must hold. $status is kept if it is bad.
status=0 logs=
run_tests()
{
    folder=$1 name=$2
    shift 2
    rm -f "$folder/meson-logs/$name.json"
    logs="$logs $folder/meson-logs/$name.json $(list_tests "$folder" "$@" | grep -c .)"
    meson test -C "$folder" --no-rebuild --print-errorlogs --logbase "$name" "$@" || status=$?
    part_ends "tests $name"
}

# part_ends NAME: adds to $parts the seconds since the last part.
began=$(date +%s)
part_ends()
{
    now=$(date +%s)
    parts="$parts, $1: $((now - began)) s"
    began=$now
}

# What --quick runs, and the tests that $stem names: what has it in its name, but of operators that
# which is called so, if there is one; of one that takes minutes the small cases, and those in each
# variant.
quick="--suite host --suite lint --no-suite slow"
tests_of_stem()
{
    list_tests build --no-suite full --no-suite oclgrind | grep -F -e "$stem" >"$scratch/named"
    for name in "operator/$stem, small" "operator/$stem"; do
        if grep -qxF -e "$name" "$scratch/named"; then
            grep -v '^operator/' "$scratch/named"
            echo "$name"
            grep -xF -e "operator/$stem, each variant" "$scratch/named"
            return
        fi
    done
    grep -v ', small$' "$scratch/named"
}

# Runs those of them that --quick does not run anyhow.
run_stem()
{
    set --
    list_tests build $quick >"$scratch/quick"
    while IFS= read -r name; do
        grep -qxF -e "$name" "$scratch/quick" || set -- "$@" "$name"
    done <"$scratch/stem"
    [ $# = 0 ] || run_tests build stem "$@"
}

strict="-Dtests=enabled -Dauto_features=enabled -Dwerror=true"
full_packages=$([ $mode = full ] && echo "$full_packages")
need_packages $build_packages $test_packages $full_packages
part_ends packages
need_build build $strict
part_ends build
if [ $mode = quick ]; then
    [ -z "$stem" ] || tests_of_stem >"$scratch/stem"
    if [ -n "$stem" ] && [ ! -s "$scratch/stem" ]; then
        counted=none
        echo "tools/test.sh: no test is named after '$stem'" >&2
        exit 2
    fi
    run_tests build quick $quick
    [ -z "$stem" ] || run_stem
else
    (
        export CC=clang
        need_build build-sanitize $strict -Dbuildtype=debugoptimized \
            -Db_sanitize=address,undefined -Db_lundef=false \
            -Dc_args=-fno-sanitize-recover=undefined
    ) || exit 1
    part_ends "build with sanitizers"
    run_tests build everything --no-suite quick $([ $mode = full ] || echo --no-suite full)
    # LLVM's interceptor of __tls_get_addr takes a block of thread-local memory whose address is 16
    # past a page's for one with a header of glibc 2.19, and LeakSanitizer then reads from anywhere.
    asan="allocator_may_return_null=1 detect_stack_use_after_return=1 intercept_tls_get_addr=0"
    export ASAN_OPTIONS="$asan"
    export UBSAN_OPTIONS=print_stacktrace=1
    export LSAN_OPTIONS="suppressions='$PWD/tests/support/leaks.txt':print_suppressions=0"
    run_tests build-sanitize sanitize --suite host --suite device
fi

counted=yes
echo "took${parts#,}"
python3 tests/support/summary.py "$status" $logs
