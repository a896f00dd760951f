# SPDX-License-Identifier: MIT
"""What share of the instructions of a step must multiply in matrix units, in percent: what default
settings have reached on NVIDIA's chips, whose compiler says most about them. The rest copies."""
from gpu import nvidia

# PROGRAM: {a type, or an option that tells its programs apart: the least}. Elements that are loaded
# alone, as where lines are of odd length, take three instructions each; f32 is split.
LEAST = {"matmul_units": {"f16": 25, "bf16": 25, "f32": 21},
         "conv2d_weight_units": {"VECTOR_S=1": 15, "VECTOR_S=2": 26, "VECTOR_S=4": 27,
                                 "VECTOR_S=8": 28}}


def faults(row):
    """What is wrong with a row, as lines."""
    if row["target"] not in nvidia.TARGETS or row["setting"] or row.get("step") is None:
        return []
    parts, least = [row["types"], *row["what"].split()], LEAST.get(row["program"], {})
    return [f"{row['target']}: {row['program']}/{row['kernel']} {row['types']} {row['what']}: "
            f"{row['step']} % of a step in matrix units, not {of}"
            for option, of in least.items() if option in parts and row["step"] < of]
