/* SPDX-License-Identifier: MIT
 *
 * What was made once and would be made again, on disk: compiled programs, plans. The folder is the
 * user's own, and yet every file is untrusted: it must have our header, the whole key, the right
 * length and the right hash, or it is as if it were not there. No failure here is an error: a
 * program is then built from its source, a plan searched for.
 */
#ifndef QN_BASE_CACHE_H
#define QN_BASE_CACHE_H

#include <quern/log.h>
#include <stdbool.h>
#include <stddef.h>

/* A descriptor of the folder `dir` (NULL: QN_CACHE_DIR, else quern/ in the user's cache folder),
 * made with mode 0700 if it is not there; temporary files that no living writer holds are removed.
 * -1 if there is to be none ("") or if it cannot be used: others may write to it, or it is not
 * ours. */
int qn_cache_open(const char *dir, const qn_log *log);
void qn_cache_close(int cache);

struct qn_binary {
    unsigned char *bytes; /* freed with free() */
    size_t size;
};

/* What was stored for the key, a text of `length` bytes. Thread-safety: Safe. */
bool qn_cache_load(int cache, const char *key, size_t length, struct qn_binary *binary);
/* Replaces it in one step: readers see the old file or the new one. */
void qn_cache_store(int cache, const char *key, size_t length, const struct qn_binary *binary);

/* The same for a text of the user's own, under a name: no key and no hash, for it may be read and
 * edited by people. NULL: there is none that can be used. Freed with free(). */
char *qn_cache_load_text(int cache, const char *name);
/* False: errno tells why; the old text is still there. */
bool qn_cache_store_text(int cache, const char *name, const char *text);

#endif
