/* SPDX-License-Identifier: MIT */
#include <quern/tensor.h>

static const struct {
    int64_t size;
    const char *name;
} dtypes[] = {{0, "none"},
#define ENTRY(name, bytes, text) {bytes, text},
              QN_DTYPE_MAP(ENTRY)
#undef ENTRY
};

static int place(qn_dtype dtype)
{
    int count = (int)(sizeof dtypes / sizeof *dtypes);
    return (int)dtype >= 0 && (int)dtype < count ? (int)dtype : 0;
}

int64_t qn_dtype_size(qn_dtype dtype)
{
    return dtypes[place(dtype)].size;
}

const char *qn_dtype_name(qn_dtype dtype)
{
    return dtypes[place(dtype)].name;
}
