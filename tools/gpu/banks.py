# SPDX-License-Identifier: MIT
"""Bank conflicts of local memory, worked out from the indexing of a kernel.

Local memory has 32 banks of 32 bits; 32 neighbouring work-items access it at once, those of 64 bits
in two turns and those of 128 in four. A conflict of n ways: n different words of one bank in a turn.
The constants are those of the kernel's source, expanded by the preprocessor. The index of each access
is written here once more; INDICES are the lines that it repeats, and where the source has another
nothing is worked out, as for kernels that are not in ACCESSES."""
import re
import subprocess

BANKS = LANES = 32
# PROGRAM: the most ways of a conflict in its default setting.
MOST = {"attention_units": 2}
# Constants of the kernels that the indices below are made of; those of the layouts of matrix units.
MMA = ["TILE_DEPTH", "TILE_PITCH_A", "TILE_PITCH_B", "UNIT_PACK"]
WINOGRAD = ["POINTS", "ROWS", "COLUMNS", "DEPTH", "STEP", "SHARE", "EDGE", "EACH", "PARTS", "MET",
            "QN_V", "SWIZZLE"]
TILED = ["SIDE", "DEPTH", "QN_ROWS", "QN_V", "PITCH_A", "PITCH_B"]
CONSTANTS = {
    "matmul_gpu": [*TILED, "PIECE_WIDTH", "PIECES", "PITCH", "A_T", "B_T"],
    "conv2d_image_gpu": [*TILED, "TILE_COLUMNS"],
    "conv2d_weight_gpu": TILED,
    "conv2d_winograd_gpu": WINOGRAD,
    "conv2d_winograd_weight_gpu": WINOGRAD,
    "matmul_units": [*MMA, "TILE_LAYOUT_NUMBER", "STRIP_BYTES(A_TYPE)", "STRIP_BYTES(B_TYPE)",
                     "A_T", "B_T", "EDGE_M", "EDGE_N", "STAGES"],
    "attention_gpu": ["WIDE", "EACH", "BLOCK", "DEEP", "QUADS", "NEAR", "HEAD"],
    "attention_units": [*MMA, "TILE_LAYOUT_NUMBER", "ROWS_PITCH"],
}
# The text of the source that the functions below repeat.
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
                            "channel = at / (POINTS * LINE), point = at / LINE % POINTS;",
                            "strip[(point * DEPTH + channel) * LINE + at % LINE] =",
                            "winograd_put(source, next_s, line, lane);", *WINOGRAD_PLACES],
    "conv2d_winograd_weight_gpu": ["lane = id % DEPTH, line = id / DEPTH;",
                                   "strip[p * STEP + PLACE(term, line)] = e[p];",
                                   "put_tile(gradient, next_d, lane, line);",
                                   "winograd_put(source, next_s, lane, line);", *WINOGRAD_PLACES],
    "matmul_units": ["strip_load(held_a, LIKE_A, next_a, offset_a);",
                     "strip_store(at->a, LIKE_A, held_a);", "tile_load_a(rows +",
                     "((along_k) ? 2 * PIECE_WORDS : (edge) / 2 + PIECE_WORDS)",
                     "((edge)*2 * PIECE_WORDS + TILE_DEPTH)",
                     "first + (piece % 2 ^ line / 4 % 2) * PIECE_WORDS",
                     "copied_at(TILE_EDGE_A, true, i % 2 * MATRIX + line, 2 * step + i / 2)",
                     "copied_at(TILE_EDGE_A, false, (2 * step + i / 2) * MATRIX + line, i % 2);",
                     "copied_at(TILE_EDGE_B, true, line, i)",
                     "copied_at(TILE_EDGE_B, false, i * MATRIX + line, 0);",
                     "(uint2)(id / copy_pieces(s), id % copy_pieces(s));"],
    "attention_gpu": ["((d)*WIDE + ((vector) ^ (d) % NEAR))", "(i)*TALL + (int)get_local_id(1)",
                      "PIECE (HEAD < 32 ? HEAD : 32)",
                      "part = w / (NEAR * EACH), pairs = PIECE / EACH / 2;",
                      "d = (part % pairs * 2 + w % 2) * EACH, token = w / 2 % EACH;",
                      "vector = part / pairs * (NEAR / 2) + w / NEAR % (NEAR / 2);",
                      "at[PANEL_AT(d, vector) * EACH] =", "to[w] = value;",
                      "tokens0 = panel[PANEL_AT(d, x)]",
                      "tile[((y * DEEP + r) * PIECE + d) / EACH];",
                      "scores[(part + row) * WIDE + x];", "tile[row * QUADS + QUAD_READ(i)];",
                      "to[(y * DEEP + r) * WIDE + x] = score[r];"],
    "attention_units": ["strip_store(to + l * strip_words(like), like, held[l]);",
                        "strip_store(to, LIKE_COLUMNS, held);",
                        "tile_load_a(block->words + l * BLOCK_STRIP, lane);",
                        "tile_load_b(columns + q * TILE_N * TILE_PITCH_B, lane);",
                        "tile_a_at(score_row(at, e), score_column(at, q, e) / UNIT_PACK);",
                        "(rows.first + tile_row(lane, i)) * ROWS_PITCH;",
                        "rows.words[row_at(rows, lane, i) + rows.part * TILE_N + "
                        "tile_column(lane, i)]",
                        "(rows.words + row_at(rows, lane, i) + n)"],
}


def changed(kernels, stem):
    """The lines of INDICES that the source of a kernel no longer has."""
    text = "".join(path.read_text() for path in (kernels / f"{stem}.cl", *(
        kernels / "lib" / f"{name}.clh" for name in ("tiled", "tile_rows", "winograd_gpu",
                                                     "tile_copied", "tile_copy"))))
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
    """The conflict when lane i accesses `width` words from words[i] on."""
    turn = LANES // width
    worst = 1
    for first in range(0, LANES, turn):
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


class Mma:
    """Strips of layout mma. See lib/tile_mma.clh; strip_place, strip_store_along and
    strip_store_across."""
    rows_of_a = 2

    def __init__(self, c):
        self.pitch_a, self.pitch_b = c["TILE_PITCH_A"], c["TILE_PITCH_B"]
        self.depth, self.pack = c["TILE_DEPTH"], c["UNIT_PACK"]

    def at_a(self, row, word):
        return row // 2 * 2 * self.pitch_a + 2 * word + row % 2

    def at_b(self, row, word):
        return row * self.pitch_b + word

    def store(self, at, along_k, size):
        vector, rows = 16 // size, self.rows_of_a if at == self.at_a else 1
        words, across = vector // self.pack, self.depth * self.pack // vector
        if along_k:
            return ([at(i // across * rows, i % across * words) for i in range(LANES)],
                    min(rows * words, 4))
        return [at(i // self.depth * vector, i % self.depth) for i in range(LANES)], 1

    def reads(self):
        yield "read a", [self.at_a(i // 4 * 2, i % 4 * 4) for i in range(LANES)], 4
        yield "read b", [self.at_b(i // 4, i % 4 * 4) for i in range(LANES)], 4

    def scores(self, shared):
        """Element 0 is row 2 * (i // 4), column 2 * (i % 4); `shared` is the pitch of rows that meet."""
        yield "store scores", [self.at_a(i // 4 * 2, i % 4) for i in range(LANES)], 1
        yield "share", [i // 4 * 2 * shared + i % 4 * 2 for i in range(LANES)], 1
        yield "maxima", [i // 4 * 2 * shared for i in range(LANES)], 4


class Mfma(Mma):
    """Those of layout mfma; see lib/tile_mfma.clh. Rows meet in registers."""
    rows_of_a = 1

    def at_a(self, row, word):
        return row * self.pitch_a + word

    def reads(self):
        yield "read a", [self.at_a(i % 16, i // 16 * 4) for i in range(LANES)], 4
        yield "read b", [self.at_b(i % 16, i // 16 * 4) for i in range(LANES)], 4

    def scores(self, shared):
        """Element 0 is row 4 * (i // 16), half i % 16."""
        yield "store scores", [self.at_a(i // 16 * 4, i % 16 // self.pack) for i in range(LANES)], 1


# By TILE_LAYOUT_NUMBER.
STRIPS = {1: Mma, 2: Mfma}


def copied_strips(c):
    """See copied_at, copy_place, matrix_a_at and matrix_b_at: lane i has line i % 8 of matrix i // 8."""
    for name, edge, along_k in (("a", c["EDGE_M"], not c["A_T"]), ("b", c["EDGE_N"], c["B_T"])):
        pieces = 4 if along_k else edge // 8

        def at(line, piece, along_k=along_k, edge=edge):
            if not along_k:
                return line * (edge // 2 + 4) + piece * 4
            return piece // 2 * (edge * 8 + 16) + line * 8 + (piece % 2 ^ line // 4 % 2) * 4
        down, right = ([i // 8 % 2 for i in range(LANES)], [i // 16 for i in range(LANES)])
        if name == "b":
            down, right = [0] * LANES, [i // 8 for i in range(LANES)]
        if not along_k:
            down, right = right, down
        yield f"store {name}", [at(i // pieces, i % pieces) for i in range(LANES)], 4
        yield f"read {name}", [at(down[i] * 8 + i % 8, right[i]) for i in range(LANES)], 4


def matmul_units(c):
    if c["STAGES"] > 1:
        return list(copied_strips(c))
    if c["TILE_LAYOUT_NUMBER"] not in STRIPS:
        return None
    strips = STRIPS[c["TILE_LAYOUT_NUMBER"]](c)
    return [("store a", *strips.store(strips.at_a, not c["A_T"], c["STRIP_BYTES(A_TYPE)"])),
            ("store b", *strips.store(strips.at_b, bool(c["B_T"]), c["STRIP_BYTES(B_TYPE)"])),
            *strips.reads()]


def attention_gpu(c):
    """See PANEL_AT, pack_panel, load_tile, dots, fold and share_scores."""
    wide, each, deep, block = c["WIDE"], c["EACH"], c["DEEP"], c["BLOCK"]
    near, piece, lane = c["NEAR"], min(c["HEAD"], 32), range(LANES)

    def panel(d, vector):
        return (d * wide + (vector ^ d % near)) * each
    yield "store panel", [panel(i % 2 * each, i // near) + i // 2 % each for i in lane], 1
    yield "store tile", [i * each for i in lane], each
    yield "dots, panel", [panel(1, i % wide) for i in lane], each
    yield "dots, tile", [i // wide * deep * piece for i in lane], each
    yield "fold, scores", [i % wide * each for i in lane], each
    yield "fold, tile", [i // wide * each for i in lane], each
    yield "store scores", [i // wide * deep * block + i % wide * each for i in lane], each


def attention_units(c):
    """See copy_strips, copy_columns, put_scores, rows_put and rows_piece."""
    if c["TILE_LAYOUT_NUMBER"] not in STRIPS:
        return None
    strips = STRIPS[c["TILE_LAYOUT_NUMBER"]](c)
    return [("store block", *strips.store(strips.at_a, True, 2)),
            ("store rows", *strips.store(strips.at_b, True, 2)),
            ("store columns", *strips.store(strips.at_b, False, 2)), *strips.reads(),
            *strips.scores(c["ROWS_PITCH"])]


ACCESSES = {"matmul_gpu": matmul_gpu, "conv2d_image_gpu": conv2d_image_gpu,
            "conv2d_weight_gpu": conv2d_weight_gpu, "conv2d_winograd_gpu": conv2d_winograd_gpu,
            "conv2d_winograd_weight_gpu": conv2d_winograd_weight_gpu,
            "matmul_units": matmul_units, "attention_gpu": attention_gpu,
            "attention_units": attention_units}


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
