#!/bin/sh
# SPDX-License-Identifier: MIT
# The one command for a GPU that appears; see gpu.py.
exec "${PYTHON:-python3}" "$(dirname "$0")/gpu.py" "$@"
