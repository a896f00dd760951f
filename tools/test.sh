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
*) sed -n '3,9s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

need_packages $build_packages $test_packages ${full:+$full_packages}
need_build build -Dtests=true
(
    export CC=clang
    need_build build-sanitize -Dtests=true -Dbuildtype=debugoptimized \
        -Db_sanitize=address,undefined -Db_lundef=false
) || exit 1

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
export QN_CACHE_DIR="$scratch/cache"
unset QN_DEVICE QN_DATA_DIR

# run_tests FOLDER NAME [OPTION OF meson test]...: the log becomes $scratch/NAME.json.
run_tests()
{
    folder=$1 name=$2
    shift 2
    meson test -C "$folder" --no-rebuild --print-errorlogs --logbase "$name" "$@"
    cp "$folder/meson-logs/$name.json" "$scratch/"
}

if [ -n "$full" ]; then
    run_tests build everything
else
    run_tests build everything --no-suite full
fi
export ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export LSAN_OPTIONS="suppressions=$PWD/tests/support/leaks.txt:print_suppressions=0"
run_tests build-sanitize sanitize --suite host --suite device

python3 tests/support/summary.py "$scratch"/*.json
