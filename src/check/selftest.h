/* SPDX-License-Identifier: MIT
 *
 * The self-test: whether a variant of an operator computes the right numbers on the device at hand.
 * A few of the harness's cases, compared with the reference in double.
 */
#ifndef QN_CHECK_SELFTEST_H
#define QN_CHECK_SELFTEST_H

#include "check/check.h"

enum { QN_SELF_TEST_TEXT = 256 };

/* Which variant of which operator, on operands of which storage type. */
struct qn_self_test_of {
    const struct qn_op *op;
    const char *variant;
    int setting;
    qn_dtype storage;
};

/* Runs the first few cases that use the variant, or with `all` every such case. QN_OK: it passed if
 * `reason` is "", else `reason` says in one line what is wrong; a variant that no case can use on
 * the device does not pass. QN_ERR_BUILD: its kernels cannot be launched. Other statuses: the
 * device or its memory failed, which says nothing about the variant. `reason` then says where. */
qn_status qn_self_test(qn_device *device, const struct qn_self_test_of *what, bool all,
                       char reason[QN_SELF_TEST_TEXT]);

#endif
