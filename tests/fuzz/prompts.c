/* SPDX-License-Identifier: MIT
 *
 * Lines of which a language model is asked for tokens, behind them or in the place of masks: what
 * is asked for lies in its line, and stands for a mask if there are masks.
 */
#include "prompts.h"
#include "file.h"
#include "fuzz.h"

enum { BYTES = 256, MASK = BYTES };

static void check(const struct prompts *p, const struct asked *asked, int64_t length)
{
    if (asked->line < 0 || asked->line >= p->n_lines || asked->width < 1 ||
        asked->width > p->width || p->width > length)
        abort();
    if (asked->first < 0 || asked->first + asked->width > (int64_t)p->n_ids || asked->place < 0 ||
        asked->place >= asked->width)
        abort();
    if (asked->mask ? p->ids[asked->first + asked->place] != MASK
                    : asked->place != asked->width - 1)
        abort();
}

static void read_all(const char *path, bool masked)
{
    static struct session session;
    struct failure failure = FAILURE_NONE;
    struct prompts prompts = {0};
    session.failure = &failure;
    session.settings.data.kind = DATA_TEXT;
    session.settings.data.mask_token = masked ? MASK : -1;
    session.settings.data.mlm_probability = masked ? 0.15 : 0;
    session.data.model = (qn_model_data){.tokens = BYTES + 1, .width = 1 << 20};
    if (prompts_open(&prompts, &session, path) == CODE_DONE) {
        if (!prompts.n_lines || (int64_t)prompts.count < prompts.n_lines)
            abort();
        for (size_t i = 0; i < prompts.count; i++)
            check(&prompts, &prompts.asked[i], session.data.model.width);
    }
    prompts_close(&prompts);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *path = fuzz_file(bytes, size);
    read_all(path, false);
    read_all(path, true);
    return 0;
}
