/* SPDX-License-Identifier: MIT */
#include "tensorboard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Numbers of fields and types of protocol buffers. */
enum {
    EVENT_WALL_TIME = 1,
    EVENT_STEP = 2,
    EVENT_VERSION = 3,
    EVENT_SUMMARY = 5,
    EVENT_SESSION = 7
};
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2, SESSION_STATUS = 1, STATUS_START = 1 };
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

enum { MESSAGE_BYTES = 1024 };

struct message {
    uint8_t bytes[MESSAGE_BYTES];
    size_t size;
};

/* --- messages: all that is put into one here fits --- */

static void put_bytes(struct message *m, const void *bytes, size_t size)
{
    memcpy(m->bytes + m->size, bytes, size);
    m->size += size;
}

/* `size` bytes of a number, the lowest first. */
static void put_fixed(struct message *m, uint64_t number, int size)
{
    for (int i = 0; i < size; i++)
        m->bytes[m->size++] = (uint8_t)(number >> 8 * i);
}

static void put_varint(struct message *m, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        m->bytes[m->size++] = (uint8_t)(number | 0x80);
    m->bytes[m->size++] = (uint8_t)number;
}

static void put_key(struct message *m, int field, int wire)
{
    put_varint(m, (uint64_t)(field << 3 | wire));
}

static void put_double(struct message *m, int field, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    put_key(m, field, WIRE_64);
    put_fixed(m, bits, 8);
}

static void put_float(struct message *m, int field, double number)
{
    const float single = (float)number;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    put_key(m, field, WIRE_32);
    put_fixed(m, bits, 4);
}

static void put_text(struct message *m, int field, const void *bytes, size_t size)
{
    put_key(m, field, WIRE_BYTES);
    put_varint(m, size);
    put_bytes(m, bytes, size);
}

static void put_scalar(struct message *summary, const char *tag, double number)
{
    struct message value = {.size = 0};
    put_text(&value, VALUE_TAG, tag, strlen(tag));
    put_float(&value, VALUE_SIMPLE, number);
    put_text(summary, SUMMARY_VALUE, value.bytes, value.size);
}

static struct message begin_event(int64_t step)
{
    struct message event = {.size = 0};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    put_double(&event, EVENT_WALL_TIME, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
    put_key(&event, EVENT_STEP, WIRE_VARINT);
    put_varint(&event, (uint64_t)step);
    return event;
}

/* --- records --- */

/* CRC-32C (Castagnoli), the bits turned and a constant added as TFRecord has it, so that sums of
 * data that hold sums differ. */
static uint32_t masked_sum(const uint8_t *bytes, size_t size)
{
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        sum ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? UINT32_C(0x82f63b78) : 0);
    }
    sum = ~sum;
    return (sum >> 15 | sum << 17) + UINT32_C(0xa282ead8);
}

static int fail(const struct tensorboard *board, struct failure *failure)
{
    return failure_set(failure, CODE_FAILED, "%s: %s", board->path, strerror(errno));
}

/* In one write, so that a reader that follows the file sees whole records. */
static int write_event(const struct tensorboard *board, const struct message *event,
                       struct failure *failure)
{
    struct message record = {.size = 0};
    put_fixed(&record, event->size, 8);
    put_fixed(&record, masked_sum(record.bytes, 8), 4);
    put_bytes(&record, event->bytes, event->size);
    put_fixed(&record, masked_sum(event->bytes, event->size), 4);
    for (size_t done = 0; done < record.size;) {
        const ssize_t n = write(board->descriptor, record.bytes + done, record.size - done);
        if (n < 0 && errno != EINTR)
            return fail(board, failure);
        done += n > 0 ? (size_t)n : 0;
    }
    return CODE_DONE;
}

/* --- files --- */

static int begin_file(const struct tensorboard *board, int64_t updates, struct failure *failure)
{
    static const char version[] = "brain.Event:2";
    struct message event = begin_event(0), session = {.size = 0};
    put_text(&event, EVENT_VERSION, version, strlen(version));
    TRY(write_event(board, &event, failure));
    event = begin_event(updates + 1);
    put_key(&session, SESSION_STATUS, WIRE_VARINT);
    put_varint(&session, STATUS_START);
    put_text(&event, EVENT_SESSION, session.bytes, session.size);
    return write_event(board, &event, failure);
}

/* The folder and those above it. */
static int make_folder(struct tensorboard *board, const char *folder, struct failure *failure)
{
    for (size_t end = 1; end <= strlen(folder); end++) {
        if (folder[end] && folder[end] != '/')
            continue;
        snprintf(board->path, sizeof board->path, "%.*s", (int)end, folder);
        if (mkdir(board->path, 0777) != 0 && errno != EEXIST)
            return fail(board, failure);
    }
    return CODE_DONE;
}

/* TensorBoard reads the files of a folder in the order of their names. */
int tensorboard_open(struct tensorboard *board, const char *folder, int64_t updates,
                     struct failure *failure)
{
    char host[64] = "";
    struct timespec now;
    if (!folder)
        return CODE_DONE;
    if (!*folder || strlen(folder) + 160 > sizeof board->path)
        return failure_set(failure, CODE_USAGE, "--tensorboard: %s",
                           *folder ? "the path is too long" : "needs the name of a folder");
    TRY(make_folder(board, folder, failure));
    clock_gettime(CLOCK_REALTIME, &now);
    gethostname(host, sizeof host - 1);
    snprintf(board->path, sizeof board->path, "%s/events.out.tfevents.%010" PRId64 "%03d.%s.%d",
             folder, (int64_t)now.tv_sec, (int)(now.tv_nsec / 1000000), *host ? host : "localhost",
             (int)getpid());
    board->descriptor = open(board->path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (board->descriptor < 0) {
        const int code = fail(board, failure);
        *board->path = 0;
        return code;
    }
    return begin_file(board, updates, failure);
}

void tensorboard_close(struct tensorboard *board)
{
    if (*board->path)
        close(board->descriptor);
    *board->path = 0;
}

/* --- figures --- */

static int write_summary(const struct tensorboard *board, int64_t step,
                         const struct message *summary, struct failure *failure)
{
    struct message event = begin_event(step);
    put_text(&event, EVENT_SUMMARY, summary->bytes, summary->size);
    return write_event(board, &event, failure);
}

/* Each in an event of its own: so many do not fit one. */
static int write_norms(const struct tensorboard *board, int64_t step, const struct norms *norms,
                       struct failure *failure)
{
    for (int g = 0; g < norms->count; g++) {
        struct message summary = {.size = 0};
        char tag[160];
        snprintf(tag, sizeof tag, "grad_norms/%s", norms->name[g]);
        put_scalar(&summary, tag, norms->norm[g]);
        TRY(write_summary(board, step, &summary, failure));
    }
    return CODE_DONE;
}

int tensorboard_update(const struct tensorboard *board, const qn_metrics *m,
                       const struct norms *norms, double seconds, struct failure *failure)
{
    struct message summary = {.size = 0};
    if (!*board->path)
        return CODE_DONE;
    put_scalar(&summary, "train/loss", m->loss);
    put_scalar(&summary, "train/lr", m->lr);
    put_scalar(&summary, "train/grad_norm", m->grad_norm);
    put_scalar(&summary, "train/samples_per_second", (double)m->samples / seconds);
    if (norms->paired)
        put_scalar(&summary, "train/grad_norm_ratio", norms->ratio);
    TRY(write_summary(board, m->update + 1, &summary, failure));
    return write_norms(board, m->update + 1, norms, failure);
}

int tensorboard_evaluation(const struct tensorboard *board, const struct moment *moment,
                           const struct evaluation *evaluation, struct failure *failure)
{
    struct message summary = {.size = 0};
    if (!*board->path)
        return CODE_DONE;
    for (int i = 0; i < FIGURES; i++) {
        char tag[64];
        if (!evaluation->figure[i].there)
            continue;
        snprintf(tag, sizeof tag, "%s/%s", evaluation->validation ? "validation" : "test",
                 evaluation_key((enum figure)i) + strlen("test_"));
        put_scalar(&summary, tag, evaluation->figure[i].value);
    }
    return write_summary(board, moment->update, &summary, failure);
}
