#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs what is missing, builds, runs the tests on the CPU (PoCL), then those without the whole
# network again under AddressSanitizer and UBSan. The last line is `N passed, N failed`.
#
#     tools/test.sh [--full]
#
# --full adds the long runs: mutations of all kernels, many interrupted trainings, gradients at
# saved states, full accuracy, long fuzzing, the report on a second OpenCL implementation.
set -u
cd "$(dirname "$0")/.." || exit 1
. tools/packages.sh

full=
case "$*" in
"") ;;
--full) full=yes ;;
*) sed -n '3,9s/^# \{0,1\}//p' tools/test.sh; exit 2 ;;
esac

# Whatever ends this early, the last line says so.
scratch= counted=
finish()
{
    [ -z "$scratch" ] || rm -rf "$scratch"
    [ -n "$counted" ] || { echo '0 passed, 1 failed'; exit 1; }
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

need_packages $build_packages $test_packages ${full:+$full_packages}
need_build build -Dtests=true
(
    export CC=clang
    need_build build-sanitize -Dtests=true -Dbuildtype=debugoptimized \
        -Db_sanitize=address,undefined -Db_lundef=false
) || exit 1

scratch=$(mktemp -d) || exit 1
export QN_CACHE_DIR="$scratch/cache"
unset QN_DEVICE QN_DATA_DIR

# run_tests FOLDER NAME [OPTION OF meson test]...: the log becomes FOLDER/meson-logs/NAME.json.
# $status is kept if it is bad, $count becomes the number of tests that the log must hold.
status=0
run_tests()
{
    folder=$1 name=$2
    shift 2
    rm -f "$folder/meson-logs/$name.json"
    count=$(meson test -C "$folder" --no-rebuild --list "$@" 2>/dev/null | grep -c .)
    meson test -C "$folder" --no-rebuild --print-errorlogs --logbase "$name" "$@" || status=$?
}

if [ -n "$full" ]; then
    run_tests build everything
else
    run_tests build everything --no-suite full
fi
everything=$count
export ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export LSAN_OPTIONS="suppressions='$PWD/tests/support/leaks.txt':print_suppressions=0"
run_tests build-sanitize sanitize --suite host --suite device

counted=yes
python3 tests/support/summary.py "$status" build/meson-logs/everything.json "$everything" \
    build-sanitize/meson-logs/sanitize.json "$count"
