#!/bin/sh
# SPDX-License-Identifier: MIT
# The demonstration: a convolutional network learns Fashion-MNIST through OpenCL inside 32 MiB of
# device memory. Installs what is missing, builds, runs.
#
#     tools/demo.sh [OPTION OF quern train]...
set -u
cd "$(dirname "$0")/.." || exit 1
. tools/packages.sh

need_packages $build_packages
fresh=-Dtests=disabled
[ -f build/build.ninja ] && fresh=
need_build build $fresh
rm -rf build/demo
exec build/tools/quern/quern train fashion-mnist \
    --out build/demo --metrics build/demo.json "$@"
