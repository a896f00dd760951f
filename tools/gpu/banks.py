# SPDX-License-Identifier: MIT
"""Bank conflicts of local memory, worked out from the indexing of a kernel.

Local memory has 32 banks of 32 bits; 32 neighbouring work-items access it at once, those of 64 bits
in two turns and those of 128 in four. A conflict of n ways: n different words of one bank in a turn.
The constants are those of the kernel's source, expanded by the preprocessor. The index of each access
is written here once more; INDICES are the lines that it repeats, and where the source has another
nothing is worked out, as for kernels that are not in ACCESSES."""
import re
import subprocess
from functools import partial

from gpu import unit_banks
from gpu.unit_banks import LANES

BANKS = 32
# PROGRAM: the most ways of a conflict in its default setting.
MOST = {"attention_units": 2, "conv2d_image_units": 2, "conv2d_weight_units": 2,
        "conv2d_winograd_gpu": 2, "conv2d_winograd_weight_gpu": 2}
# Constants of the kernels that the indices below are made of.
WINOGRAD = ["POINTS", "ROWS", "COLUMNS", "DEPTH", "STEP", "SHARE", "EDGE", "EACH", "PARTS", "MET",
            "QN_V", "SWIZZLE"]
TILED = ["SIDE", "DEPTH", "QN_ROWS", "QN_V", "PITCH_A", "PITCH_B"]
CONSTANTS = {
    "matmul_gpu": [*TILED, "PIECE_WIDTH", "PIECES", "PITCH", "A_T", "B_T"],
    "conv2d_image_gpu": [*TILED, "TILE_COLUMNS"],
    "conv2d_weight_gpu": TILED,
    "conv2d_winograd_gpu": WINOGRAD,
    "conv2d_winograd_weight_gpu": WINOGRAD,
    "attention_gpu": ["WIDE", "EACH", "BLOCK", "DEEP", "QUADS", "NEAR", "PIECE", "PITCH"],
    **unit_banks.CONSTANTS,
}
# The text of the source that the functions below repeat, of the kernels or these.
LIBRARY = ["tiled", "attention_copies", "attention_scores", "tile_mma", "tile_mfma", "tile_wmma",
           "tile_copied", "tile_copy", "winograd_gpu"]
TILED_READS = ["a + d * PITCH_A + tiled_row(0);", "b[(d * PITCH_B + tiled_column(h)) / QN_V];",
               "get_local_id(1) * QN_ROWS + r;", "(run * SIDE + get_local_id(0)) * QN_V;"]
WINOGRAD_PLACES = ["{id / SHARE, id % SHARE / EDGE * EACH, id % EDGE * QN_V};",
                   "PLACE(term, line) ((term)*COLUMNS + ((line) ^ SWIZZLE * (term)))",
                   "strip[p * STEP + PLACE(term, line)] = v[p];",
                   "row = rows + d * ROWS + (at.row ^ (SWIZZLE * d & ~7));",
                   "columns + d * COLUMNS + (at.column ^ (SWIZZLE * d & 15)) +",
                   "(met + (at.point * MET + row) * COLUMNS + column) = v;",
                   "met[(p * MET + row) * COLUMNS + column];"]
INDICES = {
    "matmul_gpu": ["? (id) / PIECES : (id) % SIDE * PIECE_WIDTH)",
                   "? (id) % PIECES * PIECE_WIDTH : (id) / SIDE)",
                   "strip[(l + e) * PITCH + edge] = element[e];",
                   "(strip + l * PITCH + edge + e) =", *TILED_READS],
    "conv2d_image_gpu": ["WEIGHT_TERM(id) ((id) % DEPTH)", "ROW(id) ((id) / DEPTH)",
                         "PIXEL(id) ((id) % TILE_COLUMNS)", "TERM(id) ((id) / TILE_COLUMNS)",
                         "(SIDE * QN_V) + (pixel) % SIDE * QN_V + (pixel) / SIDE % QN_V)",
                         "strip[WEIGHT_TERM(id) * PITCH_A + ROW(id) + e * ROW_STEP] =",
                         "strip[(TERM(id) + e * TERM_STEP) * PITCH_B + COLUMN(PIXEL(id))] =",
                         "offset[TERM(tiled_item()) + e * TERM_STEP]", *TILED_READS],
    "conv2d_weight_gpu": ["PIXEL(id) ((id) % DEPTH)", "EDGE(id) ((id) / DEPTH)",
                          "strip[PIXEL(id) * PITCH_A + EDGE(id) + e * EDGE_STEP] =",
                          "strip[PIXEL(id) * PITCH_B + EDGE(id) + e * EDGE_STEP] =",
                          "offset[EDGE(tiled_item()) + e * EDGE_STEP]", *TILED_READS],
    "conv2d_winograd_gpu": ["lane = id % COLUMNS, line = id / COLUMNS;",
                            "channel = id / (POINTS * LINE), point = id / LINE % POINTS;",
                            "channel + e * CHANNELS) * LINE + id % LINE] = next[e];",
                            "winograd_put(source, next_s, y, sh, line, lane);", *WINOGRAD_PLACES],
    "conv2d_winograd_weight_gpu": ["lane = id % DEPTH, line = id / DEPTH;",
                                   "strip[p * STEP + PLACE(term, line)] = e[p];",
                                   "put_tile(gradient, next_d, next_y + padding_y < dh - 1, lane,",
                                   "winograd_put(source, next_s, next_y, sh, lane, line);",
                                   *WINOGRAD_PLACES],
    "attention_gpu": ["((d)*PITCH + (vector))", "(i)*TALL + (int)get_local_id(1)",
                      "part = w / (NEAR * EACH), pairs = PIECE / EACH / 2;",
                      "d = (part % pairs * 2 + w % 2) * EACH, token = w / 2 % EACH;",
                      "vector = part / pairs * (NEAR / 2) + w / NEAR % (NEAR / 2);",
                      "at[PANEL_AT(d, vector) * EACH] =", "to[w] = s.of.factor",
                      "tokens0 = panel[PANEL_AT(d, x)]",
                      "tile[((y * DEEP + r) * PIECE + d) / EACH];",
                      "at->tile[id + i * ITEMS] =", "scores[row * WIDE + x];",
                      "tile[row * QUADS + QUAD_READ(i)];",
                      "to[(y * DEEP + r) * WIDE + x] = score[r];",
                      "to[get_local_id(1) * WIDE + get_local_id(0)] = value;",
                      "value[y * WIDE + get_local_id(0)]"],
    **unit_banks.INDICES,
}


def changed(kernels, stem):
    """The lines of INDICES that the source of a kernel no longer has."""
    text = "".join(path.read_text() for path in (kernels / f"{stem}.cl", *(
        kernels / "lib" / f"{name}.clh" for name in LIBRARY)))
    return [line for line in INDICES[stem] if line not in text]


def constants(kernels, program):
    names = CONSTANTS[program.stem]
    text = "\n".join(f"@ {name}" for name in names)
    command = ["clang", "-E", "-P", "-x", "c", "-imacros", str(kernels / f"{program.stem}.cl"), "-I",
               str(kernels), *program.options, "-"]
    done = subprocess.run(command, input=text, text=True, check=True, stdout=subprocess.PIPE)
    values = [line[1:].strip() for line in done.stdout.splitlines() if line.startswith("@")]
    if not all(re.fullmatch(r"[\d ()*+/-]+", value) for value in values):
        raise ValueError(f"{program.stem}: constants that are none: {values}")
    return dict(zip(names, (eval(value.replace("/", "//")) for value in values)))


def ways(words, width):
    """The conflict when work-item i accesses `width` words from words[i] on."""
    turn = LANES // width
    worst = 1
    for first in range(0, len(words), turn):
        banks = {}
        for word in words[first:first + turn]:
            for each in range(word, word + width):
                banks.setdefault(each % BANKS, set()).add(each)
        worst = max(worst, max(map(len, banks.values())))
    return worst


def tiled_reads(c):
    """Work-item id is lane y * SIDE + x; see lib/tiled.clh."""
    yield "read a", [i // c["SIDE"] * c["QN_ROWS"] for i in range(LANES)], min(c["QN_ROWS"], c["QN_V"])
    yield "read b", [i % c["SIDE"] * c["QN_V"] for i in range(LANES)], c["QN_V"]


def matmul_gpu(c):
    """See put, PIECE_EDGE and PIECE_L."""
    side, piece, pieces, pitch = c["SIDE"], c["PIECE_WIDTH"], c["PIECES"], c["PITCH"]

    def store(along_k):
        if not along_k:
            return [i // side * pitch + i % side * piece for i in range(LANES)], c["QN_V"]
        return [i % pieces * piece * pitch + i // pieces for i in range(LANES)], 1
    yield "store a", *store(not c["A_T"])
    yield "store b", *store(bool(c["B_T"]))
    yield from tiled_reads(c)


def conv2d_image_gpu(c):
    """See put_weights, put_patches, COLUMN and load_patches."""
    side, wide, run, lane = c["SIDE"], c["TILE_COLUMNS"], c["QN_V"], range(LANES)

    def column(pixel):
        return pixel // (side * run) * (side * run) + pixel % side * run + pixel // side % run
    yield "store a", [i % c["DEPTH"] * c["PITCH_A"] + i // c["DEPTH"] for i in lane], 1
    yield "store b", [i // wide * c["PITCH_B"] + column(i % wide) for i in lane], 1
    yield "offsets", [i // wide * 4 for i in lane], 4
    yield from tiled_reads(c)


def conv2d_weight_gpu(c):
    """See put_gradient, put_patches and load_patches."""
    for operand in "ab":
        pitch = c[f"PITCH_{operand.upper()}"]
        yield (f"store {operand}",
               [i % c["DEPTH"] * pitch + i // c["DEPTH"] for i in range(LANES)], 1)
    yield "offsets", [i // c["DEPTH"] * 4 for i in range(LANES)], 4
    yield from tiled_reads(c)


def winograd_reads(c):
    """See winograd_seat_of, winograd_multiply (of term 1), winograd_meet and winograd_gather."""
    share, step, term, lane = c["SHARE"], c["STEP"], c["SWIZZLE"], range(LANES)
    row = [i % share // c["EDGE"] * c["EACH"] for i in lane]
    column = [i % c["EDGE"] * c["QN_V"] for i in lane]
    yield "read rows", [i // share * step + (row[i] ^ term & ~7) for i in lane], c["QN_V"]
    yield "read columns", [i // share * step + (column[i] ^ term & 15) for i in lane], c["QN_V"]
    yield ("meet", [(i // share * c["MET"] + row[i] // c["PARTS"]) * c["COLUMNS"] + column[i]
                    for i in lane], c["QN_V"])
    yield "read sums", list(lane), 1


def conv2d_winograd_gpu(c):
    """See put_weights and winograd_put."""
    line = c["ROWS"] // c["QN_V"]
    yield ("store rows", [(i // line % c["POINTS"] * c["DEPTH"] * line + i % line) * c["QN_V"]
                          for i in range(LANES)], c["QN_V"])
    yield "store columns", list(range(LANES)), 1
    yield from winograd_reads(c)


def conv2d_winograd_weight_gpu(c):
    """See put_tile and winograd_put."""
    def place(term, line):
        return term * c["COLUMNS"] + (line ^ c["SWIZZLE"] * term)
    yield "store", [place(i % c["DEPTH"], i // c["DEPTH"]) for i in range(LANES)], 1
    yield from winograd_reads(c)


def attention_gpu(c):
    """See PANEL_AT, pack_panel, load_tile, turn, dots, fold, share_scores, exchange and largest."""
    wide, each, deep, block = c["WIDE"], c["EACH"], c["DEEP"], c["BLOCK"]
    near, piece, lane = c["NEAR"], c["PIECE"], range(LANES)

    def panel(d, vector):
        return (d * c["PITCH"] + vector) * each
    yield "store panel", [panel(i % 2 * each, i // near) + i // 2 % each for i in lane], 1
    yield "store tile", [i * each for i in lane], each
    yield "dots, panel", [panel(1, i % wide) for i in lane], each
    yield "dots, tile", [i // wide * deep * piece for i in lane], each
    yield "fold, scores", [i % wide * each for i in lane], each
    yield "fold, tile", [i // wide * each for i in lane], each
    yield "store scores", [i // wide * deep * block + i % wide * each for i in lane], each
    yield "exchange", [i * each for i in lane], each
    yield "largest", [i % wide * each for i in lane], each


ACCESSES = {"matmul_gpu": matmul_gpu, "conv2d_image_gpu": conv2d_image_gpu,
            "conv2d_weight_gpu": conv2d_weight_gpu, "conv2d_winograd_gpu": conv2d_winograd_gpu,
            "conv2d_winograd_weight_gpu": conv2d_winograd_weight_gpu,
            "attention_gpu": attention_gpu,
            **{stem: partial(unit_banks.accesses, stem) for stem in unit_banks.ACCESSES}}


def conflicts(kernels, program):
    """{access: ways}, for those of more than one way; None: not worked out."""
    if program.stem not in ACCESSES or changed(kernels, program.stem):
        return None
    accesses = ACCESSES[program.stem](constants(kernels, program))
    if accesses is None:
        return None
    found = {name: ways(words, width) for name, words, width in accesses}
    return {name: way for name, way in found.items() if way > 1}


def faults(row):
    """What is wrong with a row, as lines."""
    if row["setting"] or row["program"] not in MOST:
        return []
    over = [f"{access} {way}-way" for access, way in (row.get("banks") or {}).items()
            if way > MOST[row["program"]]]
    return [f"{row['target']}: {row['program']}/{row['kernel']} {row['types']} {row['what']}: "
            f"conflicts of {', '.join(over)}"] if over else []
