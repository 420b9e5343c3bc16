/* The words after an executable's name. */
#include "arguments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "refusal.h"
#include "threads.h"

enum { MOST_RUNS = 1000000 };

static int number(const char *option, const char *text, int most)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value < 1 || value > most)
        nanoloom_refuse(option, "%s is no whole number from 1 to %d", text, most);
    return (int)value;
}

/* What stands behind an option: after =, or as the next word. */
static char *value_of(const char *option, char *behind, int *at, int count, char **words)
{
    if (*behind == '=')
        return behind + 1;
    if (*at + 1 >= count)
        nanoloom_refuse(option, "a value is missing behind it; --help shows the usage");
    return words[++*at];
}

/* Where the word goes on behind an option's name; NULL where it is another word. */
static char *after(char *word, const char *name)
{
    size_t length = strlen(name);
    int begins = strncmp(word, name, length) == 0;
    return begins && (word[length] == 0 || word[length] == '=') ? word + length : NULL;
}

static int *flag(struct nanoloom_arguments *found, const char *word)
{
    if (strcmp(word, "--profile") == 0)
        return &found->profile;
    if (strcmp(word, "--info") == 0)
        return &found->info;
    if (strcmp(word, "--shape") == 0)
        return &found->shape;
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return &found->help;
    return NULL;
}

static void read_option(struct nanoloom_arguments *found, int *at, int count, char **words)
{
    char *word = words[*at], *behind;
    int *wanted = flag(found, word);
    if (wanted)
        *wanted = 1;
    else if ((behind = after(word, "-o")) || (behind = after(word, "--out")))
        found->outputs[found->output_count++] = value_of("-o", behind, at, count, words);
    else if ((behind = after(word, "--repeat")))
        found->repeat = number("--repeat", value_of("--repeat", behind, at, count, words),
                               MOST_RUNS);
    else if ((behind = after(word, "--trace")))
        found->trace = value_of("--trace", behind, at, count, words);
    else if ((behind = after(word, "--threads")))
        found->threads = number(
            "--threads", value_of("--threads", behind, at, count, words), NANOLOOM_MOST_THREADS);
    else
        nanoloom_refuse(word, "there is no such option; --help shows the usage");
}

struct nanoloom_arguments nanoloom_arguments_read(int count, char **words)
{
    struct nanoloom_arguments found = {0};
    found.inputs = calloc((size_t)count + 1, sizeof *found.inputs);
    found.outputs = calloc((size_t)count + 1, sizeof *found.outputs);
    if (!found.inputs || !found.outputs)
        nanoloom_refuse(NULL, "no memory for the arguments");
    int options = 1;
    for (int at = 1; at < count; at++) {
        char *word = words[at];
        if (options && strcmp(word, "--") == 0)
            options = 0;
        else if (options && word[0] == '-' && word[1])
            read_option(&found, &at, count, words);
        else
            found.inputs[found.input_count++] = word;
    }
    return found;
}
