/* SPDX-License-Identifier: MIT
 *
 * Quern: neural networks trained on any OpenCL device inside a number of bytes that you name.
 *
 *   device   an OpenCL device, opened or wrapped           (device.h)
 *   graph    what to compute, and what to minimise         (graph.h, ops.h, model.h)
 *   plan     how to compute it within a budget, proved     (plan.h)
 *   trainer  runs the plan; checkpoints                    (train.h)
 *   data     images, seeded order, loader; files           (data.h, io.h)
 *   check    whether the kernels are right on this device  (check.h)
 *   tune     which kernels are fastest on this device      (tune.h)
 *
 * General rules: every function that can fail gives a qn_status first; params structs live until
 * the call returns and zero means default; an object made by X_open or X_create is ended by X_close
 * or X_destroy, which accept a pointer to NULL and set it to NULL. Functions that use an object
 * give QN_ERR_ARGUMENT for NULL, those that only read it NULL or 0.
 */
#ifndef QUERN_QUERN_H
#define QUERN_QUERN_H

#include <quern/check.h>
#include <quern/data.h>
#include <quern/device.h>
#include <quern/graph.h>
#include <quern/io.h>
#include <quern/log.h>
#include <quern/model.h>
#include <quern/ops.h>
#include <quern/plan.h>
#include <quern/status.h>
#include <quern/tensor.h>
#include <quern/train.h>
#include <quern/tune.h>

#define QN_VERSION "0.1.0"

#endif
