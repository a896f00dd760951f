# SPDX-License-Identifier: MIT
"""How many waves of a SIMD default settings must leave room for, so that some go on while others wait
for memory; known for AMD, where compilers say it."""
# PROGRAM: the least.
LEAST = {"attention_gpu": 3, "attention_units": 3}


def faults(row):
    """What is wrong with a row, as lines."""
    least, waves = LEAST.get(row["program"], 0), row.get("waves")
    if row["setting"] or waves is None or waves >= least:
        return []
    return [f"{row['target']}: {row['program']}/{row['kernel']} {row['types']} {row['what']}: "
            f"{waves} waves, not {least}"]
