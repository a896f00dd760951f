# SPDX-License-Identifier: MIT
"""How wide default settings must load what lies in rows: 128 bits at a time, the most that there is,
wherever the arrays are aligned (QN_ALIGNED of cl_kernels/lib/type.clh)."""
FAMILIES = ["norms", "losses", "optimizers", "elementwise"]
WIDEST = 128

# PROGRAM/KERNEL, or PROGRAM for all of its kernels: why its loads are not of that width.
NARROW = {
    "batch_norm/commit": "a work-item for each channel, neighbours side by side",
    "batch_norm/gather": "a work-item for each channel, neighbours side by side",
    "affine/affine_gradient": "a work-item for each parameter, neighbours side by side",
    "gradient_norm/groups": "one norm a chunk, taken or left by its group",
    "info_nce": "a work-item for each column of scores, neighbours side by side",
}


def faults(row):
    """What is wrong with a row, as lines; nothing is known where loads are not looked at."""
    name = f"{row['program']}/{row['kernel']}"
    if (row["family"] not in FAMILIES or row["setting"] or row.get("global_loads") is None
            or name in NARROW or row["program"] in NARROW or WIDEST in row["global_loads"]):
        return []
    return [f"{row['target']}: {name} {row['types']} {row['what']}: no load of {WIDEST} bits"]
