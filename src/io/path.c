/* SPDX-License-Identifier: MIT */
#include "io/path.h"
#include "base/log.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char MARK[] = ".tmp-";

char *qn_path_join(const char *folder, const char *name)
{
    struct qn_text text = {0};
    size_t length = strlen(folder);
    bool slash = length && folder[length - 1] == '/';
    qn_text_add(&text, "%s%s%s", folder, slash || !length ? "" : "/", name);
    return qn_text_take(&text);
}

char *qn_path_folder(const char *path)
{
    struct qn_text text = {0};
    size_t length = (size_t)(qn_path_name(path) - path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    qn_text_add(&text, "%.*s", length ? (int)length : 1, length ? path : ".");
    return qn_text_take(&text);
}

const char *qn_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *qn_path_temp(const char *folder, const char *name, int attempt)
{
    struct qn_text text = {0};
    qn_text_add(&text, ".%s%s%ld-%d", name, MARK, (long)getpid(), attempt);
    char *last = qn_text_take(&text);
    if (!last)
        return NULL;
    char *path = qn_path_join(folder, last);
    free(last);
    return path;
}

static const char *skip_digits(const char *text)
{
    return text + strspn(text, "0123456789");
}

bool qn_path_is_temp(const char *name)
{
    const char *mark = NULL;
    for (const char *at = name; (at = strstr(at, MARK)) != NULL; at++)
        mark = at;
    if (name[0] != '.' || !mark)
        return false;
    const char *process = mark + strlen(MARK), *dash = skip_digits(process);
    const char *end = *dash == '-' ? skip_digits(dash + 1) : dash;
    return dash > process && end > dash + 1 && !*end;
}

bool qn_temp_claim(int fd)
{
    struct stat facts;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return false;
    return fstat(fd, &facts) == 0 && facts.st_nlink > 0;
}

qn_status qn_fail_errno(const struct qn_log *log, const char *path, const char *action)
{
    return qn_fail(log, QN_ERR_IO, "%s: cannot %s: %s", path, action, strerror(errno));
}

qn_status qn_fail_memory(const struct qn_log *log, const char *path)
{
    return qn_fail(log, QN_ERR_MEMORY, "%s: out of memory", path);
}
