/* SPDX-License-Identifier: MIT
 *
 * What pages have inside them: style sheets and scripts, as texts made by embed_texts.py.
 */
#ifndef QUERN_TOOL_EMBEDDED_H
#define QUERN_TOOL_EMBEDDED_H

extern const char page_css[], chart_js[], plan_js[];

#endif
