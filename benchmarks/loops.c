/* The loops that a C compiler is to make vectors of by itself: a matrix product and a
 * softmax, TURNS times.  Needs no libc: a whole program for RISC-V or Arm with Linux. */
#ifndef TURNS
#define TURNS 1
#endif
enum { M = 96, K = 256, N = 384 };
float a[M][K], b[K][N], c[M][N];

static void product(void)
{
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++)
            c[i][j] = 0;
        for (int k = 0; k < K; k++)
            for (int j = 0; j < N; j++)
                c[i][j] += a[i][k] * b[k][j];
    }
}

/* exp(x) for x <= 0 to some bits; a call as of libm's, or a part of the loop. */
#ifdef INLINED
static inline
#else
__attribute__((noinline))
#endif
    float
    power(float x)
{
    x = x < -87 ? -87 : x;
    int n = (int)(x * 1.44269504f - 0.5f);
    float r = x - (float)n * 0.693147181f;
    float p = 1 + r * (1 + r * (0.5f + r * (0.166666667f + r * (0.0416666667f + r * 0.00833333f))));
    union { int bits; float number; } scale = {(n + 127) << 23};
    return p * scale.number;
}

static void softmax(void)
{
    for (int i = 0; i < M; i++) {
        float most = c[i][0], sum = 0;
        for (int j = 0; j < N; j++)
            most = c[i][j] > most ? c[i][j] : most;
        for (int j = 0; j < N; j++)
            c[i][j] = power(c[i][j] - most);
        for (int j = 0; j < N; j++)
            sum += c[i][j];
        for (int j = 0; j < N; j++)
            c[i][j] /= sum;
    }
}

void _start(void)
{
    for (volatile int turn = 0; turn < TURNS; turn++) {
#ifdef SOFTMAX
        softmax();
#else
        product();
#endif
        __asm__ volatile("" ::: "memory"); /* somebody reads c, and writes a and b */
    }
    (void)product, (void)softmax;
#if defined(__riscv)
    register long number __asm__("a7") = 93, status __asm__("a0") = 0;
    __asm__ volatile("ecall" ::"r"(number), "r"(status));
#else
    register long number __asm__("x8") = 93, status __asm__("x0") = 0;
    __asm__ volatile("svc 0" ::"r"(number), "r"(status));
#endif
    for (;;)
        ;
}
