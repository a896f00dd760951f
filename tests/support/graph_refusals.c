/* SPDX-License-Identifier: MIT
 *
 * A graph file that is read and written in spite of a refused allocation is the same: run N refuses
 * the Nth call, and each must give that text, or a status and its line. No device.
 */
#include "refuse.h"
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "input images u8 Bx2x8x8\n"
                           "input labels i32 B\n"
                           "x = normalize(images) mean=0.25 deviation=0.5,1\n"
                           "c = conv2d(x) channels=4 kernel=3\n"
                           "n = batch_norm(c) relu=yes\n"
                           "f = flatten(n)\n"
                           "fc = linear(f) features=3\n"
                           "constant shift 0.5 2*1\n"
                           "e = softmax_cross_entropy(fc, labels) class_weights=1,2,3\n"
                           "objective = loss(e)\n"
                           "output logits = fc\n";

/* The text of the text, of which there is none when the Nth call is refused. */
static char *read_and_write(const char **error)
{
    const qn_graph_write_params params = {.summary = true};
    qn_graph *graph = NULL;
    char *written = NULL;
    *error = "";
    if (qn_graph_create(&graph, NULL) == QN_OK && qn_graph_read(graph, text, "text") == QN_OK)
        written = qn_graph_write(graph, &params);
    if (!written)
        *error = qn_last_error();
    qn_graph_destroy(&graph);
    return written;
}

int main(void)
{
    const char *error;
    long passed = 0, failed = 0;
    refuse_call(0);
    char *first = read_and_write(&error);
    const long total = calls_made();
    for (long n = 1; n <= total; n++) {
        refuse_call(n);
        char *again = read_and_write(&error);
        const bool good = again ? first && strcmp(first, again) == 0 : *error != 0;
        if (!good)
            printf("call %ld refused: '%s'\n", n, error);
        passed += good;
        failed += !good;
        free(again);
    }
    refuse_call(0);
    free(first);
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed > 0 || passed < 20;
}
