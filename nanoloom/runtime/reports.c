/* What an executable prints of itself and of its runs. */
#include "reports.h"

#include <inttypes.h>
#include <stdio.h>

#include "refusal.h"
#include "tensors.h"

enum { SHOWN = 8, DIGITS = 7, DIGITS_OF_INTEGERS = 20 };

/* texts: the shapes in words, NULL where they are numbers. */
static void report_tensors(const char *kind, const struct nanoloom_tensor *tensors,
                           int32_t count, const char *const *texts)
{
    char text[NANOLOOM_SHAPE_TEXT];
    for (int32_t i = 0; i < count; i++)
        printf("%s %s: %s%s\n", kind, tensors[i].name,
               nanoloom_element_name(tensors[i].element),
               texts ? texts[i]
                     : nanoloom_shape_text(text, tensors[i].rank, tensors[i].shape));
}

/* Which axes of outputs the data decide about. */
static void report_numbers(const struct nanoloom_program *program)
{
    for (int32_t i = 0; i < program->number_count; i++) {
        struct nanoloom_number number = program->numbers[i];
        const struct nanoloom_tensor *output = &program->outputs[number.output];
        printf("axis %d of output %s: as the data say", number.axis, output->name);
        if (output->shape[number.axis] < 0)
            printf(program->room_count ? "\n" : ", at most its size\n");
        else
            printf(", at most %" PRId64 "\n", output->shape[number.axis]);
    }
}

/* Which sizes only the data say. */
static void report_rooms(const struct nanoloom_sizes *sizes)
{
    const struct nanoloom_program *program = sizes->program;
    int32_t first = sizes->dim_count - program->room_count;
    for (int32_t i = 0; i < program->room_count; i++)
        printf("%s: as the data say, at %s\n", sizes->dims[first + i],
               program->rooms[i].where);
}

static void report_bounds(const struct nanoloom_sizes *sizes)
{
    for (int32_t i = 0; i < sizes->dim_count - sizes->program->room_count; i++) {
        int64_t least = sizes->or_none[i] ? 0 : sizes->least[i];
        printf("dimension %s: at least %" PRId64, sizes->dims[i], least);
        if (sizes->most[i] != INT64_MAX)
            printf(", at most %" PRId64, sizes->most[i]);
        printf("\n");
    }
}

void nanoloom_report_shapes(const struct nanoloom_program *program,
                            const struct nanoloom_sizes *sizes)
{
    const char *const *texts = sizes ? sizes->shape_texts : NULL;
    report_tensors("input", program->inputs, nanoloom_given_count(program), texts);
    report_tensors("output", program->outputs, nanoloom_made(program),
                   texts ? texts + program->input_count : NULL);
    report_numbers(program);
    if (sizes)
        report_rooms(sizes);
    if (sizes)
        report_bounds(sizes);
}

void nanoloom_report_usage(const struct nanoloom_identity *identity,
                           const struct nanoloom_program *program,
                           const struct nanoloom_sizes *sizes)
{
    printf("%s, a model compiled by nanoloom for %s\n\nusage: %s", identity->model,
           identity->target, nanoloom_program_name());
    for (int32_t i = 0; i < nanoloom_given_count(program); i++)
        printf(" %s.npy", program->inputs[i].name);
    printf(" [-o FILE.npy]... [options]\n\n"
           "  -o FILE      write an output to a .npy file, once an output, in order;\n"
           "               or all of them into an existing folder\n"
           "  --threads N  threads to run with (default: as many as there are CPUs)\n"
           "  --repeat N   run N times, print the median and the least time\n"
           "  --profile    print the time of each layer\n"
           "  --trace FILE write a timeline of the runs for ui.perfetto.dev (JSON)\n"
           "  --shape      print the shapes of the inputs and outputs\n"
           "  --info       print what this program is and what it needs\n\n");
    nanoloom_report_shapes(program, sizes);
}

void nanoloom_report_identity(const struct nanoloom_identity *identity,
                              const struct nanoloom_program *program,
                              const struct nanoloom_sizes *sizes)
{
    printf("model: %s\ndigest: %s\ncompiled by: nanoloom %s\n", identity->model,
           identity->digest, identity->version);
    printf("target: %s", identity->target);
    if (identity->vector_bits_most > identity->vector_bits_least)
        printf(", vector registers of %" PRId64 " to %" PRId64 " bits",
               identity->vector_bits_least, identity->vector_bits_most);
    for (const char *const *level = identity->levels; level && *level; level++)
        printf("%s%s", level == identity->levels ? ", one of " : ", ", *level);
    if (identity->refusal)
        printf("\nnot on this machine: %s", identity->refusal);
    printf("\nprecision: %s\n", identity->precision);
    nanoloom_report_shapes(program, sizes);
    printf("weights: %" PRId64 " bytes\n", program->parameter_bytes);
    if (sizes)
        printf("workspace: as the dimensions ask for\n");
    else
        printf("workspace: %" PRId64 " bytes, and %" PRId64 " more for each thread\n",
               nanoloom_workspace_bytes(program, 1) - program->scratch_bytes,
               program->scratch_bytes);
    printf("stack: at most %" PRId64 " bytes in each thread\n", identity->stack_bytes);
}

void nanoloom_report_values(const struct nanoloom_tensor *tensor, const void *array)
{
    char text[NANOLOOM_SHAPE_TEXT];
    int64_t count = nanoloom_tensor_elements(tensor);
    printf("%s: %s%s", tensor->name, nanoloom_element_name(tensor->element),
           nanoloom_shape_text(text, tensor->rank, tensor->shape));
    int digits = tensor->element < NANOLOOM_F16 ? DIGITS_OF_INTEGERS : DIGITS;
    for (int64_t i = 0; i < count && i < SHOWN; i++)
        printf(" %.*g", digits, nanoloom_element_value(tensor->element, array, i));
    printf(count > SHOWN ? " ...\n" : "\n");
}
