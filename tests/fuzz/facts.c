/* SPDX-License-Identifier: MIT
 *
 * Facts for `quern plan --facts`: those that are taken are those that a plan takes.
 */
#include "facts.h"
#include "file.h"
#include "fuzz.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct failure failure = FAILURE_NONE;
    qn_facts facts;
    if (facts_read(&facts, fuzz_file(bytes, size), NULL, &failure) == CODE_DONE &&
        !(facts.flops >= 1 && facts.launch_seconds <= 1e3 && facts.vector_width <= 16))
        abort();
    return 0;
}
