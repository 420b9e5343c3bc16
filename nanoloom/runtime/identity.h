/* What an executable knows of itself beside its program. */
#ifndef NANOLOOM_IDENTITY_H
#define NANOLOOM_IDENTITY_H

#include <stdint.h>

struct nanoloom_identity {
    const char *model;   /* its name */
    const char *digest;  /* of the model's file and its weights */
    const char *version; /* of the nanoloom that compiled it */
    const char *target;
    const char *precision;
    const char *const *features; /* that its code asks of a CPU; NULL behind the last */
    int64_t vector_bits_least;   /* of the vector registers; 0 where features tell */
    int64_t vector_bits_most;
    int64_t stack_bytes; /* that no thread exceeds */
};

/* Defined by the generated table of the executable. */
extern const struct nanoloom_identity nanoloom_identity;

#endif
