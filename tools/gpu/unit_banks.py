# SPDX-License-Identifier: MIT
"""What lanes access of local memory in the kernels for matrix units, for gpu/banks.py: layouts mma,
mfma and wmma."""
LANES = 32
# Constants of the kernels that the indices below are made of.
LAYOUT = ["TILE_LAYOUT_NUMBER", "TILE_DEPTH", "TILE_PITCH_A", "TILE_PITCH_B", "UNIT_PACK"]
CONSTANTS = {
    "matmul_units": [*LAYOUT, "STRIP_BYTES(A_TYPE)", "STRIP_BYTES(B_TYPE)", "A_T", "B_T",
                     "EDGE_M", "EDGE_N", "STAGES"],
    "attention_units": [*LAYOUT, "TEAMS_N"],
    "conv2d_image_units": [*LAYOUT, "GROUP", "LINE_ROWS", "LINE_VECTORS", "REGION", "RUN",
                           "PIXEL_PIECES", "PIECE_WORDS"],
    "conv2d_weight_units": [*LAYOUT, "GROUP", "ROWS", "SEATS_D", "SEATS_S", "ONCE_S"],
}
# The text of the source that the functions below repeat.
FRAGMENTS = ["words + tile_a_at(lane / 4 * 2, lane % 4 * 4);",
             "words + tile_b_at(lane / 4, lane % 4 * 4)",
             "words + tile_a_at(lane % 16, lane / 16 * 4)",
             "words + tile_b_at(lane % 16, lane / 16 * 4)", "words + tile_a_at(lane % 16, w)",
             "words + tile_b_at(lane % 16, w)"]
INDICES = {
    "matmul_units": ["strip_load(held_a, LIKE_A, next_a);",
                     "strip_store(kept.a, LIKE_A, held_a);", "tile_load_a(row, lane)", *FRAGMENTS,
                     "(half_strip * edge + (line ^ half_strip * EXCHANGED)) * LINE_WORDS +",
                     "(piece % 2 ^ line / 4 % 2) * PIECE_WORDS",
                     "(line / MATRIX * (edge / MATRIX) + piece) * MATRIX_WORDS +",
                     "line % MATRIX * PIECE_WORDS;",
                     "copied_at(TILE_EDGE_A, true, i % 2 * MATRIX + line, 2 * step + i / 2)",
                     "copied_at(TILE_EDGE_A, false, (2 * step + i / 2) * MATRIX + line, i % 2);",
                     "copied_at(TILE_EDGE_B, true, line, i)",
                     "copied_at(TILE_EDGE_B, false, i * MATRIX + line, 0);",
                     "(uint2)(id / pieces, id % pieces)",
                     "(uint2)(id / MATRIX / pieces * MATRIX + id % MATRIX, id / MATRIX % pieces);"],
    "attention_units": ["strip_store(to + l * strip_words(like), like, held[l]);",
                        "strip_store(to + strip_seat(LIKE_COLUMNS), LIKE_COLUMNS, held->columns);",
                        "tile_load_a(block->words + l * BLOCK_STRIP, lane);",
                        "tile_load_b(columns + q * TILE_N * TILE_PITCH_B, lane);",
                        "tile_a_at(score_row(at, e), score_column(at, q, e) / UNIT_PACK);",
                        *FRAGMENTS],
    "conv2d_image_units": ["(uint2)(id / PIXEL_PIECES * RUN, id % PIXEL_PIECES * PIECE_WORDS)",
                           "(uint2)(half_id / 2, (id / (2 * REGION) * 2 + half_id % 2) * 4);",
                           "half_id = id % (2 * REGION);",
                           "*(__local piece_words *)(to + tile_b_at(i, 0)) =",
                           "tile_a_at(vector / LINE_VECTORS * LINE_ROWS, vector % LINE_VECTORS * "
                           "4 / LINE_ROWS);", "offset[piece_place(n).x]",
                           "tile_load_b(pixels + tile_b_at(RUN_AT(q), 0), lane);",
                           "tile_load_a(rows + r * TILE_M * TILE_PITCH_A, lane);", *FRAGMENTS],
    "conv2d_weight_units": ["first = get_local_id(0) / SEATS_D, seat = get_local_id(0) % SEATS_D;",
                            "first = get_local_id(0) / SEATS_S, seat = get_local_id(0) % SEATS_S;",
                            "strip + tile_a_at(first * ROWS, word_of(seat));",
                            "strips + tile_b_at(first, word_of(seat));",
                            "line_of(seat) * LINE_WORDS + pixel_of(seat) / UNIT_PACK;",
                            "tile_load_a(rows + r * TILE_M * TILE_PITCH_A, lane);",
                            "tile_load_b(columns + tile_at(q, stride_y, down), lane);",
                            *FRAGMENTS],
}


class Mma:
    """Strips of layout mma. See lib/tile_mma.clh; strip_place, strip_store_along,
    strip_store_across and strip_store_pairs."""
    rows_of_a = 2
    turns = True

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
        return [at(i // self.depth * vector, i % self.depth) for i in range(LANES)], rows

    def reads(self):
        yield "read a", [self.at_a(i // 4 * 2, i % 4 * 4) for i in range(LANES)], 4
        yield "read b", [self.at_b(i // 4, i % 4 * 4) for i in range(LANES)], 4

    def scores(self):
        """Element 0 is row 2 * (i // 4), column 2 * (i % 4)."""
        yield "store scores", [self.at_a(i // 4 * 2, i % 4) for i in range(LANES)], 1


class Mfma(Mma):
    """Those of layout mfma; see lib/tile_mfma.clh."""
    rows_of_a = 1
    turns = False

    def at_a(self, row, word):
        return row * self.pitch_a + word

    def reads(self):
        yield "read a", [self.at_a(i % 16, i // 16 * 4) for i in range(LANES)], 4
        yield "read b", [self.at_b(i % 16, i // 16 * 4) for i in range(LANES)], 4

    def scores(self):
        """Element 0 is row 4 * (i // 16), half i % 16."""
        yield "store scores", [self.at_a(i // 16 * 4, i % 16 // self.pack) for i in range(LANES)], 1


class Wmma(Mfma):
    """Those of layout wmma; see lib/tile_wmma.clh. Both halves of a wave read the same."""
    def reads(self):
        yield "read a", [self.at_a(i % 16, 0) for i in range(LANES)], 4
        yield "read b", [self.at_b(i % 16, 0) for i in range(LANES)], 4

    def scores(self):
        """Element 0 is row i // 16, half i % 16."""
        yield "store scores", [self.at_a(i // 16, i % 16 // self.pack) for i in range(LANES)], 1


# By TILE_LAYOUT_NUMBER.
STRIPS = {1: Mma, 2: Mfma, 3: Wmma}


def copied_strips(c):
    """See copied_at, copy_place, matrix_a_at and matrix_b_at: lane i has line i % 8 of matrix i // 8."""
    for name, edge, along_k in (("a", c["EDGE_M"], not c["A_T"]), ("b", c["EDGE_N"], c["B_T"])):
        pieces = 4 if along_k else edge // 8

        def at(line, piece, along_k=along_k, edge=edge):
            if not along_k:
                return (line // 8 * (edge // 8) + piece) * 32 + line % 8 * 4
            second = piece // 2
            return (second * edge + (line ^ second * 2)) * 8 + (piece % 2 ^ line // 4 % 2) * 4
        down, right = ([i // 8 % 2 for i in range(LANES)], [i // 16 for i in range(LANES)])
        if name == "b":
            down, right = [0] * LANES, [i // 8 for i in range(LANES)]
        if not along_k:
            down, right = right, down
        yield f"store {name}", [at(i // pieces, i % pieces) if along_k else
                                at(i // 8 // pieces * 8 + i % 8, i // 8 % pieces)
                                for i in range(LANES)], 4
        yield f"read {name}", [at(down[i] * 8 + i % 8, right[i]) for i in range(LANES)], 4


def matmul_units(c, strips):
    if c["STAGES"] > 1:
        yield from copied_strips(c)
        return
    yield "store a", *strips.store(strips.at_a, not c["A_T"], c["STRIP_BYTES(A_TYPE)"])
    yield "store b", *strips.store(strips.at_b, bool(c["B_T"]), c["STRIP_BYTES(B_TYPE)"])
    yield from strips.reads()


def attention_units(c, strips):
    """See store_strips, store_columns and put_scores; rows meet in registers."""
    yield "store block", *strips.store(strips.at_a, True, 2)
    yield "store rows", *strips.store(strips.at_b, True, 2)
    yield "store columns", *strips.store(strips.at_b, False, 2)
    yield from strips.reads()
    if not strips.turns or c["TEAMS_N"] > 1:
        yield from strips.scores()


def conv2d_image_units(c, strips):
    """See store_weights, piece_place, load_piece and store_piece. Of a region whose pieces are single
    pixels, neighbours have two of each."""
    near, items, pieces, runs = 2 * c["REGION"], range(c["GROUP"]), c["PIXEL_PIECES"], c["RUN"] > 1
    pixel = [i // pieces * c["RUN"] if runs else i % near // 2 for i in items]
    word = [i % pieces * c["PIECE_WORDS"] if runs else (i // near * 2 + i % near % 2) * 4
            for i in items]
    yield ("store weights", [strips.at_a(i // c["LINE_VECTORS"] * c["LINE_ROWS"],
                                         i % c["LINE_VECTORS"] * 4 // c["LINE_ROWS"])
                             for i in items], 4)
    yield "store region", list(map(strips.at_b, pixel, word)), c["PIECE_WORDS"]
    yield "offsets", pixel, 1
    yield from strips.reads()


def conv2d_weight_units(c, strips):
    """See store_d and store_s; word_of(seat) is 4 * seat."""
    items = range(c["GROUP"])
    yield ("store d", [strips.at_a(i // c["SEATS_D"] * c["ROWS"], i % c["SEATS_D"] * 4)
                       for i in items], 4)
    yield ("store s", [strips.at_b(i // c["SEATS_S"], i % c["SEATS_S"] * 4)
                       for i in items if i // c["SEATS_S"] < c["ONCE_S"]], 4)
    yield from strips.reads()


ACCESSES = {"matmul_units": matmul_units, "attention_units": attention_units,
            "conv2d_image_units": conv2d_image_units, "conv2d_weight_units": conv2d_weight_units}


def accesses(stem, c):
    """(access, words, width) of a kernel with constants `c`; None of a layout that is not known."""
    layout = STRIPS.get(c["TILE_LAYOUT_NUMBER"])
    return layout and list(ACCESSES[stem](c, layout(c)))
