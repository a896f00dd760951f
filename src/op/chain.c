/* SPDX-License-Identifier: MIT */
#include "op/chain.h"

const struct qn_chain_info qn_chain_infos[] = {
#define INFO(name, arguments, needs) [QN_CHAIN_##name] = {#name, arguments, QN_CHAIN_NEEDS_##needs},
    QN_CHAIN_LIST(INFO)
#undef INFO
};
