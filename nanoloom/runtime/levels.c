/* Takes the last level that this CPU has, or the one that NANOLOOM_ISA names.
 *
 * What is taken is copied to where a file with a single level has its constants: before
 * main, or before a library is in the hands of its caller. */
#include "levels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isa.h"

enum { SENTENCE = 512 };

/* To all others these are constants, with the names of a file with a single level. */
struct nanoloom_program nanoloom_program;
const struct nanoloom_sizes *nanoloom_open_sizes;
struct nanoloom_identity nanoloom_identity;

static char refusal[SENTENCE];

static void add(const char *text)
{
    strncat(refusal, text, SENTENCE - 1 - strlen(refusal));
}

static const struct nanoloom_level *named(const char *wish)
{
    const struct nanoloom_level *level = nanoloom_levels;
    while (level->identity && !nanoloom_is_named(level->identity, wish))
        level++;
    if (level->identity)
        return level;
    add("NANOLOOM_ISA is ");
    add(wish);
    add(": the program is compiled for");
    for (level = nanoloom_levels; level->identity; level++) {
        add(level == nanoloom_levels ? " " : ", ");
        add(level->identity->target);
    }
    return nanoloom_levels;
}

static const struct nanoloom_level *wanted(void)
{
    const char *wish = getenv("NANOLOOM_ISA");
    if (wish && *wish) {
        const struct nanoloom_level *level = named(wish);
        if (!*refusal && nanoloom_cpu_lacks(level->identity, NULL, 0)) {
            add("NANOLOOM_ISA is ");
            add(wish);
            add(": ");
            size_t used = strlen(refusal);
            nanoloom_cpu_lacks(level->identity, refusal + used, SENTENCE - used);
        }
        return level;
    }
    const struct nanoloom_level *best = NULL;
    for (const struct nanoloom_level *each = nanoloom_levels; each->identity; each++)
        if (!nanoloom_cpu_lacks(each->identity, NULL, 0))
            best = each;
    if (!best)
        nanoloom_cpu_lacks(nanoloom_levels->identity, refusal, SENTENCE);
    return best ? best : nanoloom_levels;
}

__attribute__((constructor)) static void take(void)
{
    const struct nanoloom_level *level = wanted();
    nanoloom_program = *level->program;
    nanoloom_open_sizes = *level->sizes;
    nanoloom_identity = *level->identity;
    nanoloom_identity.refusal = *refusal ? refusal : NULL;
}

const char *nanoloom_refusal(void)
{
    return nanoloom_identity.refusal;
}
