/* SPDX-License-Identifier: MIT
 *
 * The parameters that a line makes itself, named and started as those of PyTorch's modules.
 */
#ifndef QN_FORM_LAYERS_H
#define QN_FORM_LAYERS_H

#include "form/forms.h"

extern const struct qn_form_layer qn_layer_of_rows;        /* linear: features */
extern const struct qn_form_layer qn_layer_of_images;      /* conv2d: channels, kernel */
extern const struct qn_form_layer qn_layer_of_images_back; /* the same, transposed */
extern const struct qn_form_layer qn_layer_of_channels;    /* norms: 1 and 0, one a channel */
extern const struct qn_form_layer qn_layer_of_last;        /* the same of the last dimensions */
extern const struct qn_form_layer qn_layer_of_last_scale;  /* without the 0 */
extern const struct qn_form_layer qn_layer_of_table;       /* embedding: rows, width */

#endif
