/* SPDX-License-Identifier: MIT
 *
 * checksums.txt: a line "CRC32 BYTES NAME" for each file beside it.
 */
#include "base/log.h"
#include "io/file.h"
#include "io/path.h"
#include "run/checkpoint.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CHECKSUMS = 4096 };

qn_status qn_checksum_check(const struct qn_log *log, const char *path,
                            const struct qn_checksum *want)
{
    uint32_t crc;
    int64_t bytes;
    QN_TRY(qn_file_crc32(path, &crc, &bytes, log));
    if (bytes != want->bytes)
        return qn_fail(log, QN_ERR_FORMAT,
                       "%s: has %" PRId64 " bytes, its checkpoint says %" PRId64, path, bytes,
                       want->bytes);
    if (crc != want->crc)
        return qn_fail(log, QN_ERR_FORMAT,
                       "%s: is corrupt (checksum %08" PRIx32 ", not %08" PRIx32 ")", path, crc,
                       want->crc);
    return QN_OK;
}

bool qn_checksum_parse(const char *line, struct qn_checksum *checksum)
{
    int end = 0;
    return sscanf(line, "%8" SCNx32 " %" SCNd64 " %63s%n", &checksum->crc, &checksum->bytes,
                  checksum->name, &end) == 3 &&
           !line[end] && !strchr(checksum->name, '/');
}

qn_status qn_checksum_read(const struct qn_log *log, const char *folder, char **text)
{
    char path[PATH_MAX + 80];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", folder, QN_CHECKSUM_FILE);
    return qn_file_read(path, MOST_CHECKSUMS, text, &size, log);
}

/* A list of that name may be anybody's: what is no line of ours says nothing. */
qn_status qn_checksum_check_listed(const struct qn_log *log, const char *path)
{
    char real[PATH_MAX], *text, *rest;
    struct qn_checksum want;
    qn_status status = QN_OK;
    char *folder = realpath(path, real) ? qn_path_folder(real) : NULL;
    if (!folder || qn_checksum_read(NULL, folder, &text) != QN_OK) {
        free(folder);
        return QN_OK;
    }
    rest = text;
    for (char *line; status == QN_OK && (line = strsep(&rest, "\n"));)
        if (qn_checksum_parse(line, &want) && strcmp(want.name, qn_path_name(real)) == 0)
            status = qn_checksum_check(log, path, &want);
    free(text);
    free(folder);
    return status;
}
