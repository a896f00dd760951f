/* SPDX-License-Identifier: MIT */
#include "fuzz.h"
#include "plan/cost/tuning.h"

#include <stdlib.h>
#include <string.h>

/* What is read can be written and read again. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct qn_tuning first = {0}, second = {0};
    char *text = malloc(size + 1), *again = NULL;
    if (!text)
        return 0;
    memcpy(text, bytes, size);
    text[size] = 0;
    if (qn_tuning_parse(&first, text, NULL) == QN_OK) {
        again = qn_tuning_text(&first);
        if (again && qn_tuning_parse(&second, again, NULL) != QN_OK)
            abort();
    }
    free(text);
    free(again);
    qn_tuning_free(&first);
    qn_tuning_free(&second);
    return 0;
}
