/* SPDX-License-Identifier: MIT
 *
 * Programs: built once for each (stem, options), from the disk cache or from source.
 */
#include "base/cache.h"
#include "base/text.h"
#include "cl/private.h"
#include "cl/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CACHE_FORMAT = 1, MAX_LOG_LINES = 200 };
static const char base_options[] = "-cl-std=CL1.2";

struct qn_program {
    struct qn_program *next;
    const char *stem, *options;
    cl_program program;
};

/* One program on its way. */
struct build {
    struct qn_device *device;
    const char *stem, *options; /* all options, base ones included */
    struct qn_source source;
    char *key;
    size_t key_length;
};

static qn_status out_of_memory(const struct build *build)
{
    return qn_fail(&build->device->log, QN_ERR_MEMORY, "kernel program %s: out of memory",
                   build->stem);
}

static qn_status write_key(struct build *build)
{
    const struct qn_device_info *info = &build->device->info;
    const struct qn_source *source = &build->source;
    struct qn_text key = {0};
    char platform[256] = "";
    clGetPlatformInfo(build->device->found.platform, CL_PLATFORM_VERSION, sizeof platform - 1,
                      platform, NULL);
    qn_text_add(&key, "format %d\nplatform %s\nplatform version %s\n", CACHE_FORMAT, info->platform,
                platform);
    qn_text_add(&key, "device %s\nvendor %s\ndriver %s\nversion %s\n", info->device, info->vendor,
                info->driver, info->version);
    qn_text_add(&key, "program %s\noptions %s\n", build->stem, build->options);
    qn_text_add(&key, "source %zu %016" PRIx64 "\n", source->length,
                qn_hash(QN_HASH_START, source->bytes, source->length));
    build->key_length = key.length;
    build->key = qn_text_take(&key);
    return build->key ? QN_OK : out_of_memory(build);
}

static char *build_log(cl_program program, cl_device_id id)
{
    size_t size = 0;
    clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    char *text = calloc(size + 1, 1);
    if (text && size > 0)
        clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, size, text, NULL);
    return text;
}

/* A log message is one line, a compiler's text many: the text goes out line by line, then the
 * sentence with the first line that speaks of an error. */
static qn_status report_failure(const struct build *build, cl_program program, cl_int error)
{
    const struct qn_log *log = &build->device->log;
    char *text = program ? build_log(program, build->device->found.id) : NULL;
    char *first = NULL, *rest = text;
    int count = 0;
    for (char *line; count < MAX_LOG_LINES && (line = strsep(&rest, "\n"));) {
        if (!*line)
            continue;
        qn_log_write(log, QN_LOG_ERROR, "%s", line);
        count++;
        if (!first && strstr(line, "error"))
            first = line;
    }
    qn_status status =
        qn_fail(log, QN_ERR_BUILD, "kernel program %s with options \"%s\" does not build: %s%s%s",
                build->stem, build->options, qn_cl_error_name(error), first ? ": " : "",
                first ? first : "");
    free(text);
    return status;
}

static cl_program from_cache(const struct build *build)
{
    struct qn_device *device = build->device;
    struct qn_binary binary;
    if (!qn_cache_load(device->cache, build->key, build->key_length, &binary))
        return NULL;
    const unsigned char *bytes = binary.bytes;
    cl_int error, loaded = CL_SUCCESS;
    cl_program program = clCreateProgramWithBinary(device->context, 1, &device->found.id,
                                                   &binary.size, &bytes, &loaded, &error);
    if (program &&
        (error != CL_SUCCESS || loaded != CL_SUCCESS ||
         clBuildProgram(program, 1, &device->found.id, build->options, NULL, NULL) != CL_SUCCESS)) {
        clReleaseProgram(program);
        program = NULL;
    }
    free(binary.bytes);
    return program;
}

static qn_status from_source(const struct build *build, cl_program *program)
{
    struct qn_device *device = build->device;
    cl_int error;
    *program = clCreateProgramWithSource(device->context, 1, (const char *[]){build->source.bytes},
                                         &build->source.length, &error);
    if (error == CL_SUCCESS)
        error = clBuildProgram(*program, 1, &device->found.id, build->options, NULL, NULL);
    if (error == CL_SUCCESS)
        return QN_OK;
    qn_status status = report_failure(build, *program, error);
    if (*program)
        clReleaseProgram(*program);
    *program = NULL;
    return status;
}

/* Which of the program's devices is ours, and of how many; a caller's context may have several. */
static int place_of_device(cl_program program, cl_device_id id, cl_uint *count)
{
    cl_device_id ids[QN_MAX_DEVICES];
    size_t size = 0;
    if (clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof ids, ids, &size) != CL_SUCCESS)
        return -1;
    *count = (cl_uint)(size / sizeof *ids);
    for (cl_uint i = 0; i < *count; i++)
        if (ids[i] == id)
            return (int)i;
    return -1;
}

static void store(const struct build *build, cl_program program)
{
    struct qn_device *device = build->device;
    cl_uint count = 0;
    int place = place_of_device(program, device->found.id, &count);
    if (device->cache < 0 || place < 0)
        return;
    size_t sizes[QN_MAX_DEVICES] = {0};
    unsigned char *binaries[QN_MAX_DEVICES] = {NULL};
    if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes, NULL) != CL_SUCCESS)
        return;
    struct qn_binary binary = {calloc(sizes[place] + 1, 1), sizes[place]};
    binaries[place] = binary.bytes;
    if (binary.bytes && clGetProgramInfo(program, CL_PROGRAM_BINARIES, count * sizeof *binaries,
                                         binaries, NULL) == CL_SUCCESS)
        qn_cache_store(device->cache, build->key, build->key_length, &binary);
    free(binary.bytes);
}

static qn_status make(struct build *build, cl_program *program)
{
    struct qn_device *device = build->device;
    const bool keep = !(device->quirks & QN_QUIRK_OWN_CACHE);
    QN_TRY(qn_source_open(&build->source, device->kernel_dir, build->stem, &device->log));
    QN_TRY(write_key(build));
    *program = keep ? from_cache(build) : NULL;
    bool cached = *program;
    if (!cached)
        QN_TRY(from_source(build, program));
    if (keep && !cached)
        store(build, *program);
    qn_log_write(&device->log, QN_LOG_DEBUG, "kernel program %s with options \"%s\": %s",
                 build->stem, build->options, cached ? "from the cache" : "built");
    return QN_OK;
}

static qn_status add(struct qn_device *device, const char *stem, const char *options,
                     struct qn_program **added)
{
    char all[2048]; /* more than a launch has (op/emit.h) */
    char units[64] = "", instance[64] = "";
    if (device->facts.matrix_units)
        snprintf(units, sizeof units, " -DQN_MATRIX_UNITS=%d -DQN_MATRIX_LAYOUT=%d",
                 device->facts.matrix_units, device->facts.matrix_layout);
    const char *apart = device->multiplies_apart ? " -DQN_FMA=0" : "";
    if (device->instance)
        snprintf(instance, sizeof instance, " -DQN_INSTANCE=%d", device->instance);
    snprintf(all, sizeof all, "%s%s%s%s %s", base_options, units, apart, instance, options);
    struct build build = {.device = device, .stem = stem, .options = all};
    struct qn_program *entry = qn_arena_new(&device->arena, struct qn_program, 1);
    char *own_stem = qn_arena_strdup(&device->arena, stem);
    char *own_options = qn_arena_strdup(&device->arena, options);
    if (!entry || !own_stem || !own_options)
        return out_of_memory(&build);
    cl_program program = NULL;
    qn_status status = make(&build, &program);
    qn_source_free(&build.source);
    free(build.key);
    if (status != QN_OK)
        return status;
    *entry = (struct qn_program){device->programs, own_stem, own_options, program};
    device->programs = *added = entry;
    return QN_OK;
}

qn_status qn_program_get(struct qn_device *device, const char *stem, const char *options,
                         cl_program *program)
{
    options += strspn(options, " ");
    struct qn_program *entry = device->programs;
    while (entry && (strcmp(entry->stem, stem) != 0 || strcmp(entry->options, options) != 0))
        entry = entry->next;
    if (!entry)
        QN_TRY(add(device, stem, options, &entry));
    *program = entry->program;
    return QN_OK;
}

void qn_programs_release(struct qn_device *device)
{
    for (struct qn_program *entry = device->programs; entry; entry = entry->next)
        clReleaseProgram(entry->program);
    device->programs = NULL;
}

qn_status qn_kernel_create(struct qn_device *device, const char *stem, const char *options,
                           const char *name, cl_kernel *kernel)
{
    cl_program program = NULL;
    QN_TRY(qn_program_get(device, stem, options, &program));
    cl_int error;
    *kernel = clCreateKernel(program, name, &error);
    if (error == CL_SUCCESS)
        return QN_OK;
    *kernel = NULL;
    return qn_fail(&device->log, QN_ERR_BUILD, "kernel %s of program %s (options \"%s\"): %s", name,
                   stem, options, qn_cl_error_name(error));
}
