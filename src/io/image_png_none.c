/* SPDX-License-Identifier: MIT
 *
 * In place of image_png.c where libpng is missing.
 */
#include "base/log.h"
#include "io/image_format.h"

qn_status qn_image_read_png(struct qn_image_job *job)
{
    return qn_fail(job->log, QN_ERR_FORMAT, "%s: a PNG file, and this libquern has no libpng",
                   job->path);
}
