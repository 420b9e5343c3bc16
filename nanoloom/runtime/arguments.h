/* The words after an executable's name. */
#ifndef NANOLOOM_ARGUMENTS_H
#define NANOLOOM_ARGUMENTS_H

struct nanoloom_arguments {
    char **inputs;  /* the words that are no options, in order */
    char **outputs; /* those behind -o */
    int input_count;
    int output_count;
    int repeat;  /* 0 where it is not asked for */
    int threads; /* 0: as many as suit the process */
    int profile;
    char *trace; /* a file, NULL for none */
    int info;
    int shape;
    int help;
};

/* Reads them, or refuses options that there are not and
 * numbers that are none. */
struct nanoloom_arguments nanoloom_arguments_read(int count, char **words);

#endif
