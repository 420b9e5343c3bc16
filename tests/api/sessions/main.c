/* Says a text to a decoder in pieces, as its words ask for; the numbers go to a file.
 *
 *     main OUT WORD...     N: the next N tokens; rN: rewind to N; bN: another batch;
 *                          aN: reserve; m: the pages of memory that the process has */
#include <stdio.h>
#include <stdlib.h>

#include "decoder.h"

enum { VOCABULARY = 50, MOST = 512, SENTENCE = 200 };

static struct nanoloom_decoder *decoder;
static int64_t batch = 1, ids[MOST];
static float mask[MOST], logits[MOST * VOCABULARY];

static long pages(void)
{
    long size = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld", &size) != 1)
        size = -1;
    if (file)
        fclose(file);
    return size;
}

static int say(int64_t count, FILE *out)
{
    int64_t sizes[NANOLOOM_DECODER_SIZES];
    sizes[NANOLOOM_DECODER_SIZE_BATCH] = batch;
    sizes[NANOLOOM_DECODER_SIZE_SEQUENCE] = count;
    int status = nanoloom_decoder_resize(decoder, sizes);
    if (status)
        return status;
    const void *inputs[] = {ids + nanoloom_decoder_length(decoder), mask};
    void *outputs[] = {logits};
    status = nanoloom_decoder_run(decoder, inputs, outputs);
    if (!status)
        fwrite(logits, sizeof *logits, (size_t)(batch * count * VOCABULARY), out);
    return status;
}

static int done(const char *word, FILE *out)
{
    int64_t number = atoll(word + (*word > '9'));
    switch (*word) {
    case 'r':
        return nanoloom_decoder_rewind(decoder, number);
    case 'a':
        return nanoloom_decoder_reserve(decoder, number);
    case 'b':
        batch = number;
        return NANOLOOM_OK;
    case 'm':
        printf("%ld ", pages());
        return NANOLOOM_OK;
    default:
        return say(number, out);
    }
}

int main(int count, char **words)
{
    FILE *out = fopen(words[1], "wb");
    decoder = nanoloom_decoder_create(1);
    if (!out || !decoder)
        return 1;
    for (int64_t i = 0; i < MOST; i++) {
        ids[i] = (7 * i * i + 3 * i) % VOCABULARY;
        mask[i] = i % 5 ? 0.0f : -50.0f;
    }
    for (int i = 2; i < count; i++) {
        char text[SENTENCE];
        int status = done(words[i], out);
        nanoloom_decoder_explain(decoder, status, text, sizeof text);
        if (status)
            printf("%s: %s\n", words[i], text);
    }
    printf("%lld tokens", (long long)nanoloom_decoder_length(decoder));
    nanoloom_decoder_destroy(decoder);
    return fclose(out);
}
