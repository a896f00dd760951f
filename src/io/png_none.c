/* SPDX-License-Identifier: MIT
 *
 * In place of png.c where libpng is missing.
 */
#include "base/log.h"

#include <quern/image.h>

qn_status qn_png_encode(void **bytes, size_t *size, const qn_png_params *params)
{
    QN_REQUIRE(params ? &params->log : NULL, bytes && size && params);
    return qn_fail(&params->log, QN_ERR_IO, "PNG: this libquern has no libpng");
}
