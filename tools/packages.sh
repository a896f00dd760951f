# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Sourced by demo.sh and test.sh: what they need from the packages of Debian 12, and the build.

build_packages="gcc libc6-dev meson ninja-build pkg-config python3 ocl-icd-opencl-dev libclblast-dev
    libinih-dev libcjson-dev zlib1g-dev pocl-opencl-icd dataset-fashion-mnist"
test_packages="g++ libcmocka-dev clang libclang-rt-14-dev oclgrind python3-numpy"
full_packages="mesa-opencl-icd python3-venv"

missing_packages()
{
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            printf '%s ' "$package"
    done
}

# Installs what is missing of the packages named, as root or through sudo; otherwise prints the
# command to run and ends with status 1.
need_packages()
{
    command -v dpkg-query >/dev/null || return 0
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    install="apt-get install -y --no-install-recommends $missing"
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
        as_root=sudo
    else
        printf 'Packages are missing. Run this once, then try again:\n' >&2
        printf '    sudo apt-get update && sudo %s\n' "$install" >&2
        exit 1
    fi
    printf 'Installing: %s\n' "$missing"
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq </dev/null &&
        $as_root env DEBIAN_FRONTEND=noninteractive $install -qq </dev/null ||
        { printf 'The packages could not be installed.\n' >&2; exit 1; }
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
