/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void keep_warning(void *user, qn_log_level level, const char *message)
{
    struct bench_device *d = user;
    if (level != QN_LOG_WARNING)
        return;
    const size_t used = strlen(d->warnings);
    snprintf(d->warnings + used, sizeof d->warnings - used, "%s\n", message);
    d->n_warnings++;
}

/* --- folders --- */

static void copy_file(const char *from, const char *to, const char *first_line)
{
    char bytes[4096];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_non_null(in);
    assert_non_null(out);
    fprintf(out, "%s\n", first_line);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, in)) > 0;)
        assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

static void copy_kernels(const char *from, const char *to, const char *file, const char *spoiled)
{
    DIR *folder = opendir(from);
    assert_non_null(folder);
    assert_int_equal(mkdir(to, 0700) == 0 || access(to, W_OK) == 0, 1);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char source[512], target[512];
        snprintf(source, sizeof source, "%s/%s", from, entry->d_name);
        snprintf(target, sizeof target, "%s/%s", to, entry->d_name);
        if (strcmp(entry->d_name, "lib") == 0)
            copy_kernels(source, target, "", "");
        else if (entry->d_name[0] != '.')
            copy_file(source, target, strcmp(entry->d_name, file) == 0 ? spoiled : "");
    }
    closedir(folder);
}

/* --- devices --- */

void bench_device_reopen(struct bench_device *d)
{
    const qn_device_params params = {.log = {keep_warning, d, QN_LOG_WARNING},
                                     .cache_dir = d->cache,
                                     .kernel_dir = *d->kernels ? d->kernels : NULL};
    qn_device_close(&d->device);
    assert_int_equal(qn_device_open(&d->device, &params), QN_OK);
}

void bench_device_open(struct bench_device *d, const char *file, const char *spoiled)
{
    *d = (struct bench_device){0};
    make_folder(d->cache);
    if (spoiled) {
        make_folder(d->kernels);
        assert_non_null(getenv("QN_KERNELS"));
        copy_kernels(getenv("QN_KERNELS"), d->kernels, file, spoiled);
    }
    bench_device_reopen(d);
}

void bench_device_close(struct bench_device *d)
{
    qn_device_close(&d->device);
    remove_folder(d->cache);
    if (*d->kernels)
        remove_folder(d->kernels);
}

/* --- plans --- */

qn_plan *layer_plan(const struct bench_device *d, const struct layer *layer)
{
    qn_graph *graph = NULL;
    qn_plan *plan = NULL;
    const qn_init init = qn_init_fan_in(layer->k);
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, layer->k});
    qn_tensor shift = qn_parameter(graph, "shift", 1, &layer->k, NULL);
    qn_tensor weight = qn_parameter(graph, "weight", 2, (int64_t[]){layer->n, layer->k}, &init);
    qn_tensor y = qn_linear(graph, qn_bias(graph, x, shift), weight, (qn_tensor){0});
    qn_loss(graph, qn_mean(graph, y, 1), "loss", NULL);
    const qn_plan_params params = {.budget = 64 << 20,
                                   .batch = {layer->batch},
                                   .micro_batch = layer->batch,
                                   .recompute = QN_RECOMPUTE_NONE,
                                   .tuning = layer->tuning,
                                   .variants = layer->variants,
                                   .park = layer->park};
    assert_int_equal(qn_plan_create(&plan, graph, qn_device_facts(d->device), &params, NULL),
                     QN_OK);
    qn_graph_destroy(&graph);
    return plan;
}

/* Word `index` of the entry of the layer's forward pass, after its operator and group. */
static const char *layer_word(const qn_plan *plan, int index, char text[64])
{
    static const char key[] = "\"linear\", \"forward\", \"";
    char *table = qn_plan_variants_json(plan);
    assert_non_null(table);
    const char *at = strstr(table, key);
    assert_non_null(at);
    at += strlen(key);
    for (; index > 0; index--)
        at += strcspn(at, "\"") + strlen("\", \"");
    snprintf(text, 64, "%.*s", (int)strcspn(at, "\""), at);
    free(table);
    return text;
}

const char *layer_variant(const qn_plan *plan, char text[64])
{
    return layer_word(plan, 0, text);
}

const char *layer_setting(const qn_plan *plan, char text[64])
{
    return layer_word(plan, 1, text);
}
