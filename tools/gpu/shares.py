# SPDX-License-Identifier: MIT
"""What share of the instructions of a step must multiply and add, in percent: what default settings
have reached. In matrix units it is asked of NVIDIA's chips, whose compiler says most about them;
the rest copies."""
from gpu import amd, nvidia

# PROGRAM: {a type, or an option that tells its programs apart: {a chip, or "" for the others: the
# least}}. Elements that are loaded alone, as where lines are of odd length, take three instructions
# each.
LEAST = {"matmul_units": {"f16": {"": 25}, "bf16": {"": 25}, "f32": {"": 25}},
         "conv2d_weight_units": {"VECTOR_S=1": {"": 15, "sm_86": 14}, "VECTOR_S=2": {"": 26},
                                 "VECTOR_S=4": {"": 27}, "VECTOR_S=8": {"": 28}}}
# PROGRAM: {a chip, or "" for the others: the least}, of NVIDIA and AMD, for each type.
FLOATS = {"conv2d_winograd_gpu": {"": 70}, "conv2d_winograd_weight_gpu": {"": 65, "sm_90": 64}}


def leasts(row):
    """What the share of a row must not be less than."""
    target, found = row["target"], []
    if target in nvidia.TARGETS:
        parts, least = [row["types"], *row["what"].split()], LEAST.get(row["program"], {})
        found += [of for option, of in least.items() if option in parts]
    if target in [*nvidia.TARGETS, *amd.TARGETS]:
        found += [FLOATS[row["program"]]] if row["program"] in FLOATS else []
    return [of.get(target, of[""]) for of in found]


def faults(row):
    """What is wrong with a row, as lines."""
    if row["setting"] or row.get("step") is None:
        return []
    return [f"{row['target']}: {row['program']}/{row['kernel']} {row['types']} {row['what']}: "
            f"{row['step']} % of a step multiply, not {of}"
            for of in leasts(row) if row["step"] < of]
