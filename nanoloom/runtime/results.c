/* The files of the outputs. */
#define _GNU_SOURCE
#include "results.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "npy.h"
#include "refusal.h"

/* The files under their first names, which go when the program ends before its time. */
static char **drafts;
static int32_t draft_count;

static void remove_drafts(void)
{
    for (int32_t i = 0; i < draft_count; i++)
        if (drafts[i])
            unlink(drafts[i]);
}

static void interrupted(int number)
{
    remove_drafts();
    signal(number, SIG_DFL);
    raise(number);
}

static void *memory_for(size_t bytes)
{
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (!memory)
        nanoloom_refuse(NULL, "no memory for the names of the outputs");
    return memory;
}

static int is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* A pipe or a device: written to as it is. */
static int is_special(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && !S_ISREG(facts.st_mode);
}

/* FOLDER/NAME.npy, without what a file's name cannot hold. */
static char *inside(const char *folder, const char *name)
{
    size_t length = strlen(folder);
    char *path = memory_for(length + strlen(name) + sizeof "/.npy");
    strcpy(path, folder);
    if (length && path[length - 1] != '/')
        path[length++] = '/';
    for (const char *at = name; *at; at++) {
        int plain = isalnum((unsigned char)*at) || strchr("._-", *at);
        path[length++] = plain && !(at == name && *at == '.') ? *at : '_';
    }
    strcpy(path + length, ".npy");
    return path;
}

/* The folder a file lies in, to be freed. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + (slash == path) : 1;
    char *folder = memory_for(length + 1);
    memcpy(folder, slash ? path : ".", length);
    return folder;
}

/* Whether two paths are one file, also where there is none yet. */
static int is_one_file(const char *path, const char *other)
{
    struct stat one, two;
    const char *names[] = {strrchr(path, '/'), strrchr(other, '/')};
    char *folders[] = {folder_of(path), folder_of(other)};
    int there = !stat(path, &one) && !stat(other, &two);
    int beside = !there && !strcmp(names[0] ? names[0] + 1 : path,
                                   names[1] ? names[1] + 1 : other);
    int found = beside && !stat(folders[0], &one) && !stat(folders[1], &two);
    free(folders[0]);
    free(folders[1]);
    return (there || found) && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

static void check_place(const char *path)
{
    char *folder = folder_of(path);
    if (!strcmp(path, "-"))
        nanoloom_refuse(path, "an array is not printed; name a file .npy");
    if (is_one_file(path, "/proc/self/exe"))
        nanoloom_refuse(path, "is this program itself; name another file");
    if (is_folder(path))
        nanoloom_refuse(path, "is a folder; name a file for each output");
    int there = is_special(path) ? access(path, W_OK) : access(folder, W_OK | X_OK);
    if (there)
        nanoloom_refuse(path, "cannot be written: %s", strerror(errno));
    free(folder);
}

struct nanoloom_results nanoloom_results_at(char **words, int32_t word_count,
                                            const struct nanoloom_tensor *outputs,
                                            int32_t output_count, const char *trace)
{
    struct nanoloom_results made = {
        memory_for(sizeof(char *) * (size_t)output_count), output_count};
    int into_folder = word_count == 1 && is_folder(words[0]);
    if (word_count > output_count && !into_folder)
        nanoloom_refuse("-o", "%d files given, the model has %d output%s", word_count,
                        output_count, output_count == 1 ? "" : "s");
    for (int32_t i = 0; i < output_count; i++) {
        if (into_folder)
            made.paths[i] = inside(words[0], outputs[i].name);
        else if (i < word_count)
            made.paths[i] = words[i];
        for (int32_t other = 0; made.paths[i] && other < i; other++)
            if (!is_special(made.paths[i]) &&
                is_one_file(made.paths[i], made.paths[other]))
                nanoloom_refuse(made.paths[i], "is named for two outputs");
        if (made.paths[i] && trace && !is_special(trace) &&
            is_one_file(made.paths[i], trace))
            nanoloom_refuse(trace, "is named for an output and for --trace");
        if (made.paths[i])
            check_place(made.paths[i]);
    }
    return made;
}

static FILE *new_draft(const char *path, char **name)
{
    static const char ending[] = ".nanoloom-XXXXXX";
    mode_t mask = umask(0);
    umask(mask);
    char *draft = memory_for(strlen(path) + sizeof ending);
    strcat(strcpy(draft, path), ending);
    *name = draft; /* before there is a file: a signal may come right behind it */
    int descriptor = mkstemp(draft);
    if (descriptor < 0) {
        *name = NULL;
        nanoloom_refuse(path, "cannot be written: %s", strerror(errno));
    }
    fchmod(descriptor, 0666 & ~mask);
    return fdopen(descriptor, "wb");
}

static void write_one(const char *path, FILE *file, const struct nanoloom_tensor *tensor,
                      const void *array)
{
    int whole = file && nanoloom_npy_write(file, tensor, array);
    if (!whole || fclose(file))
        nanoloom_refuse(path, "cannot be written: %s", strerror(errno));
}

void nanoloom_results_write(const struct nanoloom_results *results,
                            const struct nanoloom_tensor *outputs, void *const *arrays)
{
    drafts = memory_for(sizeof(char *) * (size_t)results->count);
    draft_count = results->count;
    atexit(remove_drafts);
    signal(SIGINT, interrupted);
    signal(SIGTERM, interrupted);
    signal(SIGXFSZ, SIG_IGN); /* a limit of files is refused in a sentence, too */
    for (int32_t i = 0; i < results->count; i++) {
        const char *path = results->paths[i];
        if (!path)
            continue;
        FILE *file = is_special(path) ? fopen(path, "wb") : new_draft(path, &drafts[i]);
        write_one(path, file, &outputs[i], arrays[i]);
    }
    for (int32_t i = 0; i < results->count; i++) {
        if (!drafts[i])
            continue;
        if (rename(drafts[i], results->paths[i]))
            nanoloom_refuse(results->paths[i], "cannot be written: %s", strerror(errno));
        free(drafts[i]);
        drafts[i] = NULL;
    }
}
