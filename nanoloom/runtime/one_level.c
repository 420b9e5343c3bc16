/* Refuses a CPU that has not what the only target of a library asks for: its code would
 * end the process by an illegal instruction. */
#include "isa.h"
#include "levels.h"

enum { SENTENCE = 512 };

extern const struct nanoloom_identity nanoloom_identity_0;

/* What the public functions look at, as that of the level that is taken (levels.c). */
struct nanoloom_identity nanoloom_identity;

static char refusal[SENTENCE];

__attribute__((constructor)) static void look(void)
{
    nanoloom_identity = nanoloom_identity_0;
    if (nanoloom_cpu_lacks(&nanoloom_identity_0, refusal, SENTENCE))
        nanoloom_identity.refusal = refusal;
}

const char *nanoloom_refusal(void)
{
    return nanoloom_identity.refusal;
}
