/* SPDX-License-Identifier: MIT */
#include "bed.h"

qn_graph *graph;
struct test_data data;

int open_bed(void **state)
{
    open_device(state);
    graph = test_cnn(QN_F32);
    test_data_make(&data, BED_SAMPLES, 64);
    return 0;
}

int close_bed(void **state)
{
    test_data_free(&data);
    qn_graph_destroy(&graph);
    return close_device(state);
}
