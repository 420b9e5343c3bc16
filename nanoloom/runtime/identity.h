/* What an executable knows of itself beside its program. */
#ifndef NANOLOOM_IDENTITY_H
#define NANOLOOM_IDENTITY_H

#include <stdint.h>

/* LLVM's name, and the bit that tells of it in a word of the auxiliary vector; word 0
 * where the CPU itself is asked (x86-64), or an instruction is tried (RISC-V). */
struct nanoloom_feature {
    const char *name;
    uint32_t word;
    uint32_t bit;
};

struct nanoloom_identity {
    const char *model;   /* its name */
    const char *digest;  /* of the model's file and its weights */
    const char *version; /* of the nanoloom that compiled it */
    const char *target;
    const char *const *aliases; /* its other names, NULL behind */
    const char *precision;
    const struct nanoloom_feature *features; /* that code asks for; a NULL behind */
    int64_t vector_bits_least; /* of the vector registers; 0 where features tell */
    int64_t vector_bits_most;
    int64_t stack_bytes; /* that no thread exceeds */
    const char *const *levels; /* of a file with several, NULL behind; or NULL */
    const char *refusal;       /* why none of them is taken; NULL */
};

#endif
