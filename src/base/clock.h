/* SPDX-License-Identifier: MIT */
#ifndef QN_BASE_CLOCK_H
#define QN_BASE_CLOCK_H

/* Seconds since some moment; never goes back. Thread-safety: Safe. */
double qn_clock(void);

#endif
