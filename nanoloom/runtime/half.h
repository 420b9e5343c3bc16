/* Floats of 16 bits as compiled code passes them: as integers where C has no type. */
#ifndef NANOLOOM_HALF_H
#define NANOLOOM_HALF_H

#include <stdint.h>

#ifdef __FLT16_MANT_DIG__
typedef _Float16 nanoloom_half;
typedef __bf16 nanoloom_bf16;
#else
typedef uint16_t nanoloom_half;
typedef uint16_t nanoloom_bf16;
#endif

float __extendhfsf2(nanoloom_half value);

#endif
