/* SPDX-License-Identifier: MIT
 *
 * In place of image_jpeg.c where libjpeg is missing.
 */
#include "base/log.h"
#include "io/image_format.h"

qn_status qn_image_read_jpeg(struct qn_image_job *job)
{
    return qn_fail(job->log, QN_ERR_FORMAT, "%s: a JPEG file, and this libquern has no libjpeg",
                   job->path);
}
