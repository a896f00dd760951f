/* SPDX-License-Identifier: MIT
 *
 * Inputs and attributes of the operators info_nce and bank_table, and the shape of a table.
 */
#ifndef QN_OP_INFO_NCE_H
#define QN_OP_INFO_NCE_H

#include <stdint.h>

enum {
    QN_NCE_QUERIES,
    QN_NCE_PASSAGES,
    QN_NCE_IDS,
    QN_NCE_LOGIT_SCALE,
    QN_NCE_BANK_QUERIES,
    QN_NCE_BANK_PASSAGES,
    QN_NCE_BANK_IDS,
    QN_NCE_TABLE,
};

/* Of bank_table. */
enum { QN_TABLE_QUERIES, QN_TABLE_PASSAGES, QN_TABLE_IDS, QN_TABLE_BEFORE };

struct qn_info_nce_attr {
    float scale;    /* of scores, beside the exponential of the logit scale */
    int symmetric;  /* passages look for their queries, too */
    int local_mean; /* over the queries of the micro-step, not over those of the bank, too */
    int duplicates; /* passages of one id count as one: they are no negatives of each other */
};

static inline float qn_nce_scale(double temperature)
{
    return (float)(temperature == 0 ? 1 : 1 / temperature);
}

struct qn_bank_table_attr {
    float scale;
    int symmetric, duplicates; /* as above */
};

/* What the samples of a bank know of each other, (rows, k): of its m samples the newest k have
 * queries, in a ring of k rows, and row i of that ring has column i. Row 0 is the score of its own
 * pair. Of the passages of each tile of samples, by their place in the bank, it has the largest
 * score with the query, and in the next row the sum of e^(score - that); both 0 where no score of
 * them counts. With two sides the same follows of its own passage and the queries of each tile.
 *
 * Small tiles are soon made anew, and many of them take bytes: 64 samples a tile, more from 128
 * tiles on, so that a sample has 1 KiB or 2. */
enum { QN_TABLE_TILE = 64, QN_TABLE_MOST_TILES = 128 };

static inline int64_t qn_table_tile(int64_t samples)
{
    const int64_t most = QN_TABLE_TILE * QN_TABLE_MOST_TILES;
    return QN_TABLE_TILE * (1 + (samples - 1) / most);
}

static inline int64_t qn_table_tiles(int64_t samples)
{
    const int64_t tile = qn_table_tile(samples);
    return (samples + tile - 1) / tile;
}

static inline int64_t qn_table_rows(int64_t samples, int64_t queries, int symmetric)
{
    return 1 + 2 * (qn_table_tiles(samples) + (symmetric ? qn_table_tiles(queries) : 0));
}

#endif
