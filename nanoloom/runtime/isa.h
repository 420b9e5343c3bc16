/* Whether this CPU has what a program's code asks for. */
#ifndef NANOLOOM_ISA_H
#define NANOLOOM_ISA_H

#include <stddef.h>

#include "identity.h"

/* The first feature, by LLVM's name, that the CPU or the system under it has not; NULL
 * where all are there.  What nobody can ask about counts as there. */
const char *nanoloom_missing_feature(const struct nanoloom_identity *identity);

/* Bits of a scalable vector register; 0 where there is none. */
int64_t nanoloom_vector_bits(void);

/* Whether this CPU cannot run the program: it would end in an illegal instruction.  Why,
 * as snprintf writes it. */
int nanoloom_cpu_lacks(const struct nanoloom_identity *identity, char *text, size_t bytes);

/* Whether a name is the target's, or another one of it: features in any order. */
int nanoloom_is_named(const struct nanoloom_identity *identity, const char *name);

#endif
