/* SPDX-License-Identifier: MIT
 *
 * Between image.c and the readers of the formats.
 */
#ifndef QN_IO_IMAGE_FORMAT_H
#define QN_IO_IMAGE_FORMAT_H

#include "io/image.h"

#include <stdio.h>

/* One file being read. */
struct qn_image_job {
    FILE *file; /* at its beginning */
    const char *path;
    const struct qn_log *log;
    const struct qn_image_facts *expected; /* as stored; NULL: the header is read alone */
    enum qn_image_form form;
    uint8_t *pixels; /* become form QN_IMAGE_INDEX, else as many channels as are stored */
    struct qn_image_facts facts; /* as stored, not upright; `bytes` is there before the rest */
    int64_t packed;              /* bytes of the pixels before they were compressed */
};

/* The readers call it once `facts` and `packed` are there, before anything of the image's size is
 * allocated. */
qn_status qn_image_accept(const struct qn_image_job *job);

qn_status qn_image_read_png(struct qn_image_job *job);
qn_status qn_image_read_jpeg(struct qn_image_job *job);

#endif
