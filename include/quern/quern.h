/* SPDX-License-Identifier: MIT
 *
 * Quern: neural networks trained on any OpenCL device inside a number of bytes that you name.
 *
 *   device   an OpenCL device, opened or wrapped           (device.h)
 *   graph    what to compute, and what to minimise         (graph.h, ops.h, model.h)
 *   plan     how to compute it within a budget, proved     (plan.h)
 *   trainer  runs the plan; checkpoints                    (train.h)
 *   group    several devices that train one model          (group.h)
 *   predict  uses what was trained                        (predict.h)
 *   schedule learning rates and batches by the update      (schedule.h)
 *   data     columns, seeded order, loader; files          (data.h, io.h)
 *   text     tokenizers: text as numbers                   (text.h)
 *   towers   losses of pairs among other pairs             (contrastive.h, drift.h)
 *   metric   accuracy and other figures of an evaluation   (metric.h, retrieval.h)
 *   check    whether the kernels are right on this device  (check.h)
 *   tune     which kernels are fastest on this device      (tune.h)
 *   abi      version, and sizes of structs                 (abi.h)
 *
 * General rules: every function that can fail gives a qn_status first; params structs live until
 * the call returns and zero means default; an object made by X_open or X_create is ended by X_close
 * or X_destroy, which accept a pointer to NULL and set it to NULL. Functions that use an object
 * give QN_ERR_ARGUMENT for NULL, those that only read it NULL or 0. What went wrong is told in one
 * line, by the log and by qn_last_error. A text that comes as `char *` is the caller's, who frees
 * it with qn_free; a `const char *` is borrowed.
 */
#ifndef QUERN_QUERN_H
#define QUERN_QUERN_H

#include <quern/abi.h>
#include <quern/check.h>
#include <quern/contrastive.h>
#include <quern/data.h>
#include <quern/device.h>
#include <quern/drift.h>
#include <quern/generate.h>
#include <quern/graph.h>
#include <quern/graph_file.h>
#include <quern/group.h>
#include <quern/image.h>
#include <quern/io.h>
#include <quern/log.h>
#include <quern/metric.h>
#include <quern/model.h>
#include <quern/ops.h>
#include <quern/plan.h>
#include <quern/predict.h>
#include <quern/retrieval.h>
#include <quern/schedule.h>
#include <quern/status.h>
#include <quern/tensor.h>
#include <quern/text.h>
#include <quern/train.h>
#include <quern/tune.h>

#endif
