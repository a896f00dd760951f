/* SPDX-License-Identifier: MIT
 *
 * train.json of a checkpoint.
 */
#include "fuzz.h"
#include "run/checkpoint.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct qn_checkpoint checkpoint = {.info = {.path = "fuzz"}};
    char *text = fuzz_text(bytes, size);
    if (!text)
        return 0;
    if (qn_train_parse(&checkpoint, "fuzz", text) == QN_OK &&
        !(checkpoint.info.facts.bytes_per_second >= 1 && checkpoint.info.plan.batch[0] >= 1 &&
          checkpoint.counters.loss_scale >= 1 && checkpoint.counters.loss_scale <= 0x1p24f))
        abort();
    free(text);
    qn_arena_free(&checkpoint.arena);
    return 0;
}
