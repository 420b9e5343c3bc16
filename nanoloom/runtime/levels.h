/* Code for several CPUs of one kind in one file, of which one is taken at the start. */
#ifndef NANOLOOM_LEVELS_H
#define NANOLOOM_LEVELS_H

#include "identity.h"
#include "sizes.h"

struct nanoloom_level {
    const struct nanoloom_identity *identity;
    const struct nanoloom_program *program;
    const struct nanoloom_sizes *const *sizes;
};

/* Defined by the generated table: the least level first, a NULL behind the last. */
extern const struct nanoloom_level nanoloom_levels[];

/* Why no level is taken; NULL where one is. */
__attribute__((visibility("default"))) const char *nanoloom_refusal(void);

#endif
