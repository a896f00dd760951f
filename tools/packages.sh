# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Sourced by demo.sh and test.sh: what they need from the packages of Debian 12, and the build.

build_packages="gcc libc6-dev meson ninja-build pkg-config python3 ocl-icd-opencl-dev libclblast-dev
    libinih-dev libcjson-dev zlib1g-dev libpng-dev libjpeg62-turbo-dev libpcre2-dev
    libutf8proc-dev pocl-opencl-icd dataset-fashion-mnist"
test_packages="g++ libcmocka-dev clang libclang-rt-14-dev oclgrind openmpi-bin libopenmpi-dev"
full_packages="mesa-opencl-icd python3-venv chromium"

missing_packages()
{
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            printf '%s ' "$package"
    done
}

# Prints the command that installs the packages, as it works on this machine, and ends.
ask_for_packages()
{
    command="apt-get update && apt-get install -y --no-install-recommends $*"
    if [ "$(id -u)" != 0 ] && command -v sudo >/dev/null; then
        command="sudo sh -c '$command'"
    elif [ "$(id -u)" != 0 ]; then
        command="su -c '$command'"
    fi
    printf 'Packages are missing. Run this once, then try again:\n    %s\n' "$command" >&2
    exit 1
}

# Installs what is missing of the packages named, as root or through sudo; where that cannot be
# done, prints the command to run and ends with status 1.
need_packages()
{
    command -v dpkg-query >/dev/null || return 0
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
        as_root=sudo
    else
        ask_for_packages $missing
    fi
    printf 'Installing: %s\n' "$missing"
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq </dev/null &&
        $as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends $missing </dev/null ||
        ask_for_packages $missing
}

# need_build FOLDER [OPTION]...: configures the folder, or with the same options again, and builds.
need_build()
{
    folder=$1
    shift
    if [ -f "$folder/build.ninja" ]; then
        meson setup --reconfigure "$@" "$folder" >"$folder/setup.log" 2>&1
    else
        mkdir -p "$folder" && meson setup "$@" "$folder" >"$folder/setup.log" 2>&1
    fi || { cat "$folder/setup.log" >&2; exit 1; }
    ninja -C "$folder" >"$folder/ninja.log" 2>&1 || { tail -n 60 "$folder/ninja.log" >&2; exit 1; }
}
