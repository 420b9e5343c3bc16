/* Continues a text with a decoder that nanoloom compiled with --session.
 *
 *     ./session TOKENS ID...      prints the ids of so many tokens behind those given
 *
 * The model has one input, the ids of tokens [batch, sequence], and one output, the
 * logits of the next ones [batch, sequence, words].  Of those the likeliest is taken. */
#include <stdio.h>
#include <stdlib.h>

#include "decoder.h"

enum { SENTENCE = 256 };

static struct nanoloom_decoder *decoder;

static void stop(int status)
{
    char text[SENTENCE];
    nanoloom_decoder_explain(decoder, status, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    exit(1);
}

/* How many tokens each run brings from now on. */
static void bring(int64_t count)
{
    int64_t sizes[NANOLOOM_DECODER_SIZES];
    sizes[NANOLOOM_DECODER_SIZE_BATCH] = 1;
    sizes[NANOLOOM_DECODER_SIZE_SEQUENCE] = count;
    int status = nanoloom_decoder_resize(decoder, sizes);
    if (status)
        stop(status);
}

/* Adds tokens to the text; gives the likeliest next one. */
static int64_t next(const int64_t *ids, int64_t count, float *logits, int64_t words)
{
    const void *inputs[] = {ids};
    void *outputs[] = {logits};
    int status = nanoloom_decoder_run(decoder, inputs, outputs);
    if (status)
        stop(status);
    const float *last = logits + (count - 1) * words;
    int64_t best = 0;
    for (int64_t word = 1; word < words; word++)
        if (last[word] > last[best])
            best = word;
    return best;
}

int main(int argc, char **argv)
{
    int64_t count = argc - 2, tokens = argc > 2 ? atoll(argv[1]) : 0;
    decoder = nanoloom_decoder_create(0);
    if (tokens < 1 || !decoder) {
        fprintf(stderr, decoder ? "usage: session TOKENS ID...\n" : "no memory\n");
        return 1;
    }
    int64_t words = nanoloom_decoder_output(0)->shape[2];
    int64_t *ids = malloc((size_t)count * sizeof *ids);
    float *logits = malloc((size_t)(count * words) * sizeof *logits);
    if (!ids || !logits) {
        fprintf(stderr, "no memory\n");
        return 1;
    }
    for (int64_t i = 0; i < count; i++)
        ids[i] = atoll(argv[i + 2]);
    bring(count);
    int64_t id = next(ids, count, logits, words);
    bring(1);
    for (; tokens > 1; tokens--) {
        printf("%lld ", (long long)id);
        id = next(&id, 1, logits, words);
    }
    printf("%lld\n", (long long)id);
    nanoloom_decoder_destroy(decoder);
    free(ids);
    free(logits);
    return 0;
}
