/* SPDX-License-Identifier: MIT */
#include "ranks_checkpoint.h"
#include "file.h"
#include "ranks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char LIST[] = "checksums.txt", TOKENIZER[] = "tokenizer.json";
enum { PIECE = 1 << 22, NAME_BYTES = 64, PATH_BYTES = PATH_MAX + NAME_BYTES };

/* A file on its way, to the ranks that want it. */
struct transfer {
    struct ranks_checkpoint *checkpoint;
    char name[NAME_BYTES], path[PATH_BYTES];
    int64_t bytes;
    const void *from; /* of rank 0 */
    size_t size;
    struct file_part to; /* of the others */
    const bool *wanted;  /* by rank */
    void *piece;         /* (PIECE) */
};

static bool receives(const struct transfer *t)
{
    return !ranks_first() && t->wanted[ranks_own()];
}

/* --- the list of files --- */

static int list_path(const char *folder, char path[PATH_BYTES], struct failure *failure)
{
    return snprintf(path, PATH_BYTES, "%s/%s", folder, LIST) < PATH_BYTES
               ? CODE_DONE
               : failure_set(failure, CODE_FAILED, "%s: the path is too long", folder);
}

/* Its folder, a line, and the list: what rank 0 tells the others. */
static int describe(char **text, const char *folder, struct failure *failure)
{
    char path[PATH_BYTES], *list;
    TRY(list_path(folder, path, failure));
    TRY(file_read(&list, path, failure));
    const size_t room = strlen(folder) + strlen(list) + 2;
    *text = malloc(room);
    if (*text)
        snprintf(*text, room, "%s\n%s", folder, list);
    free(list);
    return *text ? CODE_DONE : failure_set(failure, CODE_FAILED, "out of memory");
}

/* Whether this rank sees the same folder. */
static bool is_here(const char *folder, const char *list)
{
    struct failure none = FAILURE_NONE;
    char path[PATH_BYTES], *own = NULL;
    const bool same = list_path(folder, path, &none) == CODE_DONE &&
                      file_read(&own, path, &none) == CODE_DONE && strcmp(own, list) == 0;
    free(own);
    return same;
}

/* The file of the line at *list, which moves behind it. */
static bool next_file(const char **list, struct transfer *t)
{
    int length = 0;
    if (sscanf(*list, "%*8x %" SCNd64 " %63s%n", &t->bytes, t->name, &length) != 2 || t->bytes < 1)
        return false;
    *list += length;
    *list += **list == '\n';
    return true;
}

/* --- sending it --- */

static int open_end(struct transfer *t, struct failure *failure)
{
    snprintf(t->path, sizeof t->path, "%s/%s", t->checkpoint->path, t->name);
    if (receives(t))
        return file_begin(&t->to, t->path, failure);
    if (!ranks_first())
        return CODE_DONE;
    TRY(file_map(&t->from, &t->size, t->path, failure));
    return (int64_t)t->size == t->bytes
               ? CODE_DONE
               : failure_set(failure, CODE_FAILED, "%s: has %zu bytes, and %" PRId64 " in %s",
                             t->path, t->size, t->bytes, LIST);
}

static int send_piece(const struct transfer *t, int64_t at, int64_t count, struct failure *failure)
{
    for (int r = 1; r < ranks_count(); r++)
        if (t->wanted[r])
            TRY(ranks_send(r, (const char *)t->from + at, count, failure));
    return CODE_DONE;
}

/* What cannot be written is received all the same: rank 0 sends it. */
static int move(struct transfer *t, struct failure *failure)
{
    int code = CODE_DONE;
    for (int64_t at = 0, count; at < t->bytes; at += count) {
        count = t->bytes - at < PIECE ? t->bytes - at : PIECE;
        if (ranks_first())
            TRY(send_piece(t, at, count, failure));
        if (!receives(t))
            continue;
        if (ranks_receive(0, t->piece, count, failure))
            return file_end(&t->to, failure->code, failure);
        code = code ? code : file_add(&t->to, t->piece, (size_t)count, failure);
    }
    return receives(t) ? file_end(&t->to, code, failure) : CODE_DONE;
}

static int move_file(struct transfer *t, struct failure *failure)
{
    int code = ranks_agree(open_end(t, failure), failure);
    if (!code)
        code = ranks_agree(move(t, failure), failure);
    if (t->from)
        file_unmap(t->from, t->size);
    t->from = NULL;
    return code;
}

/* All files, then their list, which every rank has. */
static int move_all(struct transfer *t, const char *list, struct failure *failure)
{
    const char *rest = list;
    while (next_file(&rest, t))
        TRY(move_file(t, failure));
    TRY(list_path(t->checkpoint->path, t->path, failure));
    return receives(t) ? file_replace(t->path, list, failure) : CODE_DONE;
}

/* A tokenizer that was made of the data lies with the training (moved.h). */
static int read_tokenizer(const struct ranks_checkpoint *checkpoint, char **text,
                          struct failure *failure)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/../%s", checkpoint->path, TOKENIZER);
    if (access(path, R_OK) == 0)
        return file_read(text, path, failure);
    *text = calloc(1, 1);
    return *text ? CODE_DONE : failure_set(failure, CODE_FAILED, "out of memory");
}

static int write_tokenizer(const struct ranks_checkpoint *checkpoint, const char *text,
                           struct failure *failure)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", checkpoint->path, TOKENIZER);
    return checkpoint->copied && *text ? file_replace(path, text, failure) : CODE_DONE;
}

static int move_tokenizer(const struct ranks_checkpoint *checkpoint, struct failure *failure)
{
    char *text = NULL;
    int code = ranks_agree(ranks_first() ? read_tokenizer(checkpoint, &text, failure) : CODE_DONE,
                           failure);
    if (!code)
        code = ranks_text(&text, failure);
    if (!code)
        code = ranks_agree(write_tokenizer(checkpoint, text, failure), failure);
    free(text);
    return code;
}

/* --- the whole --- */

static int make_folder(struct ranks_checkpoint *checkpoint, struct failure *failure)
{
    const char *place = getenv("TMPDIR");
    snprintf(checkpoint->path, sizeof checkpoint->path, "%s/quern-XXXXXX", place ? place : "/tmp");
    checkpoint->copied = mkdtemp(checkpoint->path) != NULL;
    return checkpoint->copied
               ? CODE_DONE
               : failure_set(failure, CODE_FAILED, "%s: %s", checkpoint->path, strerror(errno));
}

static int find(struct ranks_checkpoint *checkpoint, const char *folder, const char *list,
                struct failure *failure)
{
    snprintf(checkpoint->path, sizeof checkpoint->path, "%s", folder);
    return ranks_first() || is_here(folder, list) ? CODE_DONE : make_folder(checkpoint, failure);
}

/* `text`: a folder, a line, the list. */
static int open_text(struct ranks_checkpoint *checkpoint, char *text, struct failure *failure)
{
    bool wanted[QN_MAX_GROUP];
    char *list = text;
    const char *folder = strsep(&list, "\n");
    TRY(ranks_agree(find(checkpoint, folder, list ? list : "", failure), failure));
    TRY(ranks_gather(&checkpoint->copied, sizeof *wanted, wanted, failure));
    struct transfer t = {.checkpoint = checkpoint, .wanted = wanted, .piece = malloc(PIECE)};
    int code = t.piece ? CODE_DONE : failure_set(failure, CODE_FAILED, "out of memory");
    code = ranks_agree(code, failure);
    if (!code)
        code = ranks_agree(move_all(&t, list ? list : "", failure), failure);
    free(t.piece);
    return code ? code : move_tokenizer(checkpoint, failure);
}

int ranks_checkpoint_open(struct ranks_checkpoint *checkpoint, const char *path,
                          struct failure *failure)
{
    char *text = NULL;
    int code = ranks_agree(ranks_first() ? describe(&text, path, failure) : CODE_DONE, failure);
    if (!code)
        code = ranks_text(&text, failure);
    if (!code)
        code = open_text(checkpoint, text, failure);
    free(text);
    return code;
}

void ranks_checkpoint_close(struct ranks_checkpoint *checkpoint)
{
    if (checkpoint->copied)
        file_remove_folder(checkpoint->path);
    checkpoint->copied = false;
}
