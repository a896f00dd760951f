# SPDX-License-Identifier: MIT
"""Which of the programs that the operators launch are hot: those that gpu_report.py is about."""
from typing import NamedTuple

from gpu.programs import launches

PLAIN = {"HAS_BIAS": ["0"], "HAS_RESIDUAL": ["0"], "ACTIVATION": ["0"], "A_T": ["0", "1"],
         "B_T": ["0", "1"]}
LAYOUTS = ["mma", "mfma", "wmma", "dpas8", "dpas16"]
TILES = {"QN_ROWS": ["4", "8"], "QN_COLUMNS": ["8"]}
BOTH_WAYS = {"QN_GRADIENT": ["0", "1"]}
WINDOW = {"QN_TAPS": ["1", "3"], "QN_STRIDE": ["1"]}
# STEM: (family, {option: the values that are looked at}). Of several values each is looked at by
# itself; options that are not named have the value of the first launch that does.
HOT = {
    "matmul_gpu": ("matrix product", {**PLAIN, "QN_ROWS": ["4", "8"]}),
    "matmul_units": ("matrix units", {**PLAIN, "TILE_LAYOUT": LAYOUTS}),
    "conv2d_image_gpu": ("convolution", {**BOTH_WAYS, **TILES, "QN_TAPS": ["3"],
                                         "QN_STRIDE": ["1"]}),
    "conv2d_weight_gpu": ("convolution", TILES),
    "conv2d_image_units": ("matrix units", {**BOTH_WAYS, **WINDOW, "TILE_LAYOUT": LAYOUTS,
                                            "SPLIT": ["0"], "RUN": ["1", "4", "8"]}),
    "conv2d_weight_units": ("matrix units", {**WINDOW, "TILE_LAYOUT": LAYOUTS,
                                             "VECTOR_S": ["1", "2", "4", "8"],
                                             "WALK": ["0", "1", "2"]}),
    "conv2d_winograd_gpu": ("convolution", {}),
    "conv2d_winograd_weight_gpu": ("convolution", {}),
    "conv2d_depthwise_gpu": ("convolution", BOTH_WAYS),
    "conv2d_depthwise_weight_gpu": ("convolution", {}),
    "attention_gpu": ("attention", {"HEAD": ["64", "128"], "DROPOUT": ["0"],
                                    "PIECE": ["32", "64"]}),
    "attention_units": ("matrix units", {"HEAD": ["64", "128"], "DROPOUT": ["0"],
                                         "TILE_LAYOUT": LAYOUTS}),
    "attention": ("attention", {"HEAD": ["64"]}),
    "row_norm": ("norms", {"QN_RMS": ["0", "1"], "QN_PLANES": ["0"]}),
    "batch_norm": ("norms", {"QN_PLANES": ["1"], "QN_RELU": ["0"]}),
    "affine": ("norms", {"QN_PLANES": ["0"], "QN_RMS": ["0"], "QN_RELU": ["0"]}),
    "softmax": ("losses", {}),
    "softmax_cross_entropy": ("losses", {"LABEL_TYPE": ["i32"]}),
    "info_nce": ("losses", {"QN_BANK_ROWS": ["1"]}),
    "update": ("optimizers", {}),
    "adamw8": ("optimizers", {}),
    "flash_adamw": ("optimizers", {}),
    "adafactor": ("optimizers", {}),
    "gradient_norm": ("optimizers", {}),
    "unary": ("elementwise", {}),
    "binary": ("elementwise", {}),
    "gated": ("elementwise", {"QN_FORM": ["SILU"], "QN_DG": ["1"], "QN_DX": ["1"]}),
    "bias": ("elementwise", {}),
    "dropout": ("elementwise", {}),
    "rotary": ("elementwise", {}),
}
# In Program.what: a shape that devices with matrix units of layout mma take, and no others.
MMA_ALONE = "PIECE=64"
FAMILIES = list(dict.fromkeys(family for family, _ in HOT.values()))
# One of each family, for a look within a minute.
CORE = {("matmul_gpu", "f16", "A_T=0 B_T=0 QN_ROWS=8"),
        ("matmul_units", "f16", "A_T=0 B_T=0 TILE_LAYOUT=mma"),
        ("matmul_units", "f16", "A_T=0 B_T=0 TILE_LAYOUT=dpas8"),
        ("conv2d_image_gpu", "f32", "QN_GRADIENT=0 QN_ROWS=8"), ("attention_gpu", "f16", "HEAD=64 PIECE=32"),
        ("attention_units", "f16", "HEAD=64 TILE_LAYOUT=mma"), ("row_norm", "f16", "QN_RMS=0"),
        ("softmax_cross_entropy", "f32", ""), ("update", "f32", ""), ("unary", "f16", "")}


class Program(NamedTuple):
    """A program that is looked at. `storage`: the type of its operands; `what`: the options that
    tell it from others of its stem; `kernels`: name -> (work-items of a group, index of the
    setting, 0 for a default)."""
    family: str
    stem: str
    storage: str
    what: str
    options: tuple
    kernels: dict


def option_values(options):
    return dict(option[2:].partition("=")[::2] for option in options)


def operand_types(values):
    return [value for name, value in values.items() if name.endswith("_TYPE")
            and name not in ("LABEL_TYPE", "UNIT_TYPE")]


def storage_of(values):
    """The type of the operands, those that must be f32 left aside; None where they are mixed."""
    narrow = set(operand_types(values)) - {"f32"}
    if len(narrow) > 1 or not narrow <= {"f16", "bf16"}:
        return None
    return narrow.pop() if narrow else "f32"


def what_of(stem, values):
    """The options by which programs of a stem are told apart; None: it is not looked at."""
    wanted = {name: of for name, of in HOT[stem][1].items() if name in values}
    if any(values[name] not in of for name, of in wanted.items()):
        return None
    return " ".join(f"{name}={values[name]}" for name, of in wanted.items() if len(of) > 1)


def candidates(program, core):
    """(launch, its storage type, what_of), those of most operands of that type first, and of these
    those whose vectors are aligned, as in most models."""
    found = []
    for launch in launches(program, "gpu"):
        if launch.stem not in HOT:
            continue
        values = option_values(launch.options)
        storage, what = storage_of(values), what_of(launch.stem, values)
        if storage is None or what is None or core and (launch.stem, storage, what) not in CORE:
            continue
        found.append((-operand_types(values).count(storage), "QN_ALIGNED" not in values, launch,
                      storage, what))
    return [item[2:] for item in sorted(found, key=lambda item: item[:2])]


def hot_programs(program, core=False):
    """The programs that the report is about, as `program` prints them: each kernel with the first
    options that do what HOT says, for each storage type and setting."""
    chosen, found = {}, {}
    for launch, storage, what in candidates(program, core):
        chosen.setdefault((launch.stem, launch.kernel, storage, what, launch.setting), launch)
    for (stem, kernel, storage, what, setting), launch in sorted(chosen.items()):
        of = found.setdefault((stem, launch.options), Program(
            HOT[stem][0], stem, storage, what, launch.options, {}))
        of.kernels.setdefault(kernel, (launch.items, setting))
    order = list(HOT)
    return sorted(found.values(), key=lambda p: (order.index(p.stem), p.storage, p.what, p.options))
