/* SPDX-License-Identifier: MIT
 *
 * Signals that end a training or tuning in good order: what is under way is finished and saved,
 * then the command ends with 128 and the signal's number, as a shell would say it.
 */
#ifndef QUERN_TOOL_SIGNALS_H
#define QUERN_TOOL_SIGNALS_H

#include "failure.h"

/* From now on the first SIGINT or SIGTERM is only remembered; a second one ends the program. To be
 * called while there is one thread; later calls change nothing.
 * Writing to a pipe that nobody reads fails and ends nothing. */
void signals_catch(void);
/* The signal that came, 0 if none did. */
int signals_received(void);
/* Goes on as if this signal had come, unless one has; 0: none. */
void signals_take(int number);
/* CODE_DONE; after a signal its code, without a reason: there is none to tell. */
int signals_code(struct failure *failure);

#endif
